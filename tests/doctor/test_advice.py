"""Which preset suits a machine, and when a stage is too slow for speech."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.config import PRESETS
from voiceloop.doctor.advice import (
    SLOWEST,
    ExaminedMachine,
    advice,
    judged,
    keeps_up,
    machine_of,
    suggest,
)
from voiceloop.doctor.findings import Finding
from voiceloop.presets import BEST_FIRST, GB

pytestmark = pytest.mark.pure

ORDER = [need.name for need in BEST_FIRST]
memories = st.none() | st.integers(0, 100 * GB)
machines = st.builds(ExaminedMachine, st.integers(1, 64), memories, st.integers(0, 100 * GB))


def test_every_preset_has_its_needs_and_the_last_needs_nothing() -> None:
    assert sorted(ORDER) == sorted(PRESETS)
    assert ExaminedMachine(1, 0, 0).meets(BEST_FIRST[-1])


@given(machines, st.sampled_from(ORDER), st.booleans())
def test_what_is_suggested_is_the_best_that_the_machine_can_run(
    machine: ExaminedMachine, configured: str, slow: bool
) -> None:
    place = ORDER.index(suggest(machine, configured, slow=slow).name)
    first = ORDER.index(configured) + 1 if slow else 0
    assert machine.meets(BEST_FIRST[place])
    assert place >= first or configured == ORDER[-1]
    assert not any(machine.meets(need) for need in BEST_FIRST[first:place])


@given(machines, st.integers(0, 8), st.integers(0, 10 * GB), st.integers(0, 30 * GB))
def test_more_of_anything_never_leads_to_a_lesser_preset(
    machine: ExaminedMachine, cores: int, memory: int, gpu: int
) -> None:
    more = None if machine.memory is None else machine.memory + memory
    larger = ExaminedMachine(machine.cores + cores, more, machine.gpu + gpu)
    less, best = (suggest(one, "starter", slow=False).name for one in (machine, larger))
    assert ORDER.index(best) <= ORDER.index(less)


@pytest.mark.parametrize(
    ("machine", "preset"),
    [
        (ExaminedMachine(1, 30 * GB, 0), "starter"),
        (ExaminedMachine(2, GB, 0), "starter"),
        (ExaminedMachine(2, None, 0), "laptop"),
        (ExaminedMachine(2, 2 * GB, 0), "cpu"),
        (ExaminedMachine(2, 4 * GB, 0), "laptop"),
        (ExaminedMachine(8, 16 * GB, 8_300_000_000), "small"),
        (ExaminedMachine(8, 16 * GB, 25_300_000_000), "best"),
    ],
    ids=str,
)
def test_machines_that_people_have(machine: ExaminedMachine, preset: str) -> None:
    assert suggest(machine, "starter", slow=False).name == preset


FOUND = [
    Finding("processor", "ok", "4 cores, AVX2", figures={"cores": 4}),
    Finding("memory", "ok", "8.0 GB free", figures={"bytes": 8e9}),
    Finding("graphics", "ok", "none"),
    Finding("recogniser", "ok", "whisper", figures={"s_per_s": 0.123}),
    Finding("language model", "ok", "llm", figures={"first_token_s": 0.1, "tokens_per_s": 21.4}),
]


def test_the_machine_is_told_in_one_line_and_the_preset_with_its_reason() -> None:
    assert machine_of(FOUND) == ExaminedMachine(4, 8 * GB, 0)
    machine, preset = advice(FOUND, "starter")
    assert machine.text == (
        "4 cores, AVX2; recogniser 0.12 s for a second of sound; language model 21 tokens/s"
    )
    assert preset.text == (
        "laptop suits this machine (4 cores, 8.0 GB of memory free, no GPU): "
        "voiceloop models pull laptop, then --preset laptop"
    )
    assert advice(FOUND, "laptop")[1].text == (
        "laptop suits this machine (4 cores, 8.0 GB of memory free, no GPU)"
    )


def test_a_preset_that_was_too_slow_is_not_suggested_again() -> None:
    slow = Finding("language model", "warning", "llm", figures={"tokens_per_s": 2.0})
    _, preset = advice([*FOUND[:-1], slow], "cpu")
    assert preset.text == (
        "starter suits this machine (language model slower than speech with cpu): --preset starter"
    )


def test_where_no_check_could_run_something_is_said_all_the_same() -> None:
    machine, preset = advice([Finding("process", "broken", "none")], "cpu")
    assert machine.text == "processor unknown"
    assert preset.text.startswith("starter suits this machine (1 core, no GPU)")


@pytest.mark.parametrize("check", SLOWEST)
@given(value=st.floats(0, 1000))
def test_a_stage_is_as_quick_as_speech_or_a_warning(check: str, value: float) -> None:
    name, limit = SLOWEST[check]
    quick = value >= limit if name == "tokens_per_s" else value <= limit
    found = judged(check, "x", {name: value})
    assert keeps_up(check, {name: value}) == quick == (found.mark == "ok")
    assert bool(found.cure) == (not quick)


def test_what_was_not_measured_is_not_slow() -> None:
    assert keeps_up("recogniser", {}) and keeps_up("end of turn", {"s": 99.0})
