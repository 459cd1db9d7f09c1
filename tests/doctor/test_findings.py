"""Whatever a check raises or dies of is one finding with something to do about it."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.doctor.findings import Finding, of_death, of_error, of_hang, works
from voiceloop.errors import EngineError, MissingExtra, ModelCorrupt

pytestmark = pytest.mark.pure


def test_what_is_broken_is_needed_and_a_warning_is_not() -> None:
    fine = [Finding("a", "ok", ""), Finding("b", "warning", "")]
    assert works([]) and works(fine)
    assert not works([*fine, Finding("c", "broken", "")])


def test_an_error_for_users_is_told_as_it_is() -> None:
    found = of_error("x", EngineError("no such thing", "get one"))
    assert found == Finding("x", "broken", "no such thing", "get one")
    assert of_error("x", MissingExtra("y", "coqui")).cure


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


@pytest.mark.parametrize("name", ["SIGILL", "SIGKILL", "SIGSEGV", "SIGABRT"])
def test_a_signal_is_named(name: str) -> None:
    if not hasattr(signal, name):
        pytest.skip(f"this system has no {name}")
    found = of_death("x", -signal.Signals[name])
    assert name in found.text and found.mark == "broken" and found.cure


@given(st.integers(-(2**31), 2**32 - 1))
def test_any_exit_status_is_told(status: int) -> None:
    assert of_death("x", status).cure


def test_a_check_without_an_end_is_told_with_its_time() -> None:
    assert of_hang("x", 180.0).text == "no answer in 180 s"
