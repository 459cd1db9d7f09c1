"""What errors and deaths come to, which stage is too slow, and which preset suits a machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.settings.test_presets import machine
from voiceloop.doctor.findings import SLOWEST, Finding, advice, judged, of_death, of_error
from voiceloop.errors import ModelCorrupt
from voiceloop.settings.presets import Machine, Preset

pytestmark = pytest.mark.pure


FOUND = [
    Finding("processor", "ok", "4 cores, AVX2", figures={"cores": 4}),
    Finding("memory", "ok", "8.0 GB free", figures={"bytes": 8e9}),
    Finding("graphics", "ok", "none"),
    Finding("recogniser", "ok", "whisper", figures={"s_per_s": 0.123}),
    Finding("language model", "ok", "llm", figures={"first_token_s": 0.1, "tokens_per_s": 21.4}),
]


def advised(found: list[Finding], configured: str, of: Machine) -> tuple[str, str]:
    def way(preset: Preset) -> str:
        return f"take {preset.name}"

    told, preset = advice(found, configured, of, way)
    return told.text, preset.text


def test_the_machine_is_told_in_one_line_and_the_preset_with_its_reason() -> None:
    told, preset = advised(FOUND, "starter", machine(cores=4, memory=8))
    assert told == (
        "4 cores, AVX2; recogniser 0.12 s for a second of sound; language model 21 tokens/s"
    )
    suits = "laptop suits this machine (4 cores, 8.0 GB of memory, no GPU)"
    assert preset == f"{suits}: take laptop"
    assert advised(FOUND, "laptop", machine(cores=4, memory=8))[1] == suits
    assert advised(FOUND, "laptop", machine(1, None, 24))[1].startswith(
        "best suits this machine (1 core, a GPU of 24.0 GB): "
    )


def test_a_preset_that_was_too_slow_is_not_suggested_again() -> None:
    slow = Finding("language model", "warning", "llm", figures={"tokens_per_s": 2.0})
    told = "starter suits this machine (language model slower than speech with mini): take starter"
    assert advised([*FOUND[:-1], slow], "mini", machine())[1] == told


def test_where_no_check_could_run_something_is_said_all_the_same() -> None:
    told, preset = advised([Finding("process", "broken", "none")], "mini", machine(cores=1))
    assert told == "processor unknown"
    assert preset.startswith("starter suits this machine (1 core, 16.0 GB of memory, no GPU)")


@pytest.mark.parametrize("check", SLOWEST)
@given(value=st.floats(0, 1000))
def test_a_stage_is_as_quick_as_speech_or_a_warning(check: str, value: float) -> None:
    name, limit = SLOWEST[check]
    quick = value >= limit if name == "tokens_per_s" else value <= limit
    found = judged(check, "x", {name: value})
    assert (found.mark == "ok") == quick
    assert bool(found.cure) == (not quick)


def test_damaged_files_can_be_looked_at() -> None:
    cure = of_error("x", ModelCorrupt("it is damaged", "get another")).cure
    assert "voiceloop models verify" in cure and cure.endswith("get another")


@given(st.text(max_size=400))
def test_any_other_error_is_one_line_of_bounded_length(text: str) -> None:
    found = of_error("x", RuntimeError(text))
    assert found.text.startswith("the check has failed: RuntimeError")
    assert len(found.text) < 260 and len(found.text.splitlines()) == 1
    assert found.mark == "broken" and found.cure


def test_an_error_without_words_is_told_by_its_name() -> None:
    assert of_error("x", MemoryError()).text == "the check has failed: MemoryError"
    assert "memory" in of_error("x", MemoryError()).cure


@given(st.integers(-(2**31), 2**32 - 1))
def test_any_exit_status_is_told(status: int) -> None:
    assert of_death("x", status).cure
