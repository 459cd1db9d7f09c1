"""Checks run in real processes, which may crash, hang and shout; each comes to a finding."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.doctor import dying
from voiceloop.doctor.examine import LIMIT_S, MOST_WARNINGS, Case, Check, examine
from voiceloop.doctor.findings import Finding
from voiceloop.settings.config import Config

pytestmark = pytest.mark.real

CASE = Case(Config(preset="cpu"), ("wrong", "mend it"), Path("a.toml"))


def told(*checks: Check, limit_s: float = LIMIT_S) -> list[Finding]:
    """What is found by checks that are called by their places."""
    by_place = {str(place): check for place, check in enumerate(checks)}
    with closing(examine(CASE, by_place, limit_s)) as all_told:
        return [one for one in all_told if isinstance(one, Finding)]


def marks(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(found.check, found.mark) for found in findings]


FINE = [("fine", "ok"), ("fine", "warning")]


def test_findings_come_in_order_with_the_names_of_checks_that_begin() -> None:
    checks = {"a": dying.fine, "b": dying.nothing, "c": dying.fine}
    every = list(examine(CASE, checks))
    assert [one if isinstance(one, str) else one.check for one in every] == [
        *("a", "fine", "fine"), "b", *("c", "fine", "fine")
    ]  # fmt: skip
    found = [one for one in every if isinstance(one, Finding)]
    assert found[0].text == "preset cpu"
    assert found[0].figures == found[-2].figures, "they share a process as long as it lives"


@pytest.mark.parametrize(
    ("check", "how"), [("crashes", "SIGSEGV"), ("killed", "SIGKILL"), ("leaves", "status 3")]
)
def test_a_check_that_ends_its_process_is_broken_and_the_others_run(check: str, how: str) -> None:
    ruin = getattr(dying, check)
    found = told(dying.fine, ruin, dying.fine)
    assert [*marks(found)[:2], *marks(found)[-2:]] == [*FINE, *FINE]
    last = found[-3]
    assert (last.check, last.mark) == ("1", "broken") and how in last.text and last.cure


def test_a_check_without_an_end_is_given_up_and_the_others_run() -> None:
    found = told(dying.hangs, dying.fine, limit_s=5)
    assert marks(found) == [("0", "broken"), *FINE]


def test_what_a_check_raises_is_a_finding_after_those_that_it_had() -> None:
    found = told(dying.raises, dying.fine)
    assert marks(found) == [("raises", "ok"), ("0", "broken"), *FINE]
    assert found[1].text == "the check has failed: RuntimeError: no such luck"


def test_nothing_that_a_check_writes_reaches_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert marks(told(dying.talks)) == [("talks", "ok")]
    assert capfd.readouterr() == ("", "")


def test_what_voiceloop_warns_of_is_a_finding() -> None:
    found = told(dying.warns, dying.fine)
    assert marks(found) == [("warns", "ok"), ("0", "warning"), *FINE]
    assert found[1].text == "the GPU does not work"


def test_of_too_many_warnings_the_first_are_kept() -> None:
    _, *found = told(dying.shouts)
    assert [one.text for one in found] == [f"warning {number}" for number in range(MOST_WARNINGS)]


def test_where_no_check_can_begin_that_is_told_once() -> None:
    def check(case: Case) -> Iterator[Finding]:
        raise AssertionError("the other process cannot find it")

    check.__qualname__, check.__module__ = "check", "of_this_process_alone"
    sys.modules[check.__module__] = cast(Any, SimpleNamespace(check=check))
    try:
        (found,) = told(check, check, check)
    finally:
        del sys.modules[check.__module__]
    assert (found.check, found.mark) == ("process", "broken")


def test_whoever_stops_listening_ends_the_process() -> None:
    checks = {"fine": dying.fine, "hangs": dying.hangs}
    with closing(examine(CASE, checks)) as every:
        while next(every) != "hangs":
            pass
        assert active_children()
    assert not active_children()
