"""The expected result of a scenario, and how its result differs from that.

The classes have the keys of `[expect]` in a scenario file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from voiceloop.replay.recorded import NOBODY, Difference, ReplayResult, turns
from voiceloop.settings.schema import Object, Texts
from voiceloop.types import Notice, Outcome
from voiceloop.view.transcript import TurnOver


class ExpectedTurn(Object, frozen=True):
    """Expected values of a turn. A value that is not given may be anything."""

    transcript: str | None = None
    """The user's words as they were recognised."""
    reply: str | None = None
    """The written reply, heard or not."""
    heard: str | None = None
    """The part of the reply that was heard."""
    outcome: Outcome | None = None
    max_voice_to_voice_ms: float | None = None
    """The most ms from the user's last sample to the first sound."""
    counters: Mapping[str, int | float] = {}
    """Values of the turn's counters. A counter that the turn does not have is 0."""


class Expect(Object, frozen=True):
    """Expected result of a scenario. A value that is not given may be anything."""

    turn: tuple[ExpectedTurn, ...] = ()
    """All turns in order; empty: any turns."""
    notices: Texts | None = None
    """All notices in order; None: any notices."""


def differences(replay: ReplayResult, expect: Expect) -> list[Difference]:
    """Return the differences between a result and what is expected."""
    found: list[Difference] = []
    notices = tuple(event.text for _, event in replay.shown if isinstance(event, Notice))
    if expect.notices is not None and notices != expect.notices:
        found.append(Difference(NOBODY, "notices", list(expect.notices), list(notices)))
    if expect.turn:
        lines = turns(replay)
        if len(lines) != len(expect.turn):
            found.append(Difference(NOBODY, "turns", len(expect.turn), len(lines)))
        for line, expected in zip(lines, expect.turn, strict=False):
            found += _turn_differences(line, expected)
    return found


def _turn_differences(line: TurnOver, expected: ExpectedTurn) -> Iterator[Difference]:
    trace, number = line.trace, line.trace.turn
    for name, wanted, was in (
        ("outcome", expected.outcome, trace.outcome),
        ("transcript", expected.transcript, line.said),
        ("reply", expected.reply, line.reply),
        ("heard", expected.heard, trace.heard),
    ):
        if wanted is not None and wanted != was:
            yield Difference(number, name, wanted, was)
    most, took = expected.max_voice_to_voice_ms, line.voice_to_voice_ms
    if most is not None and (took is None or took > most):
        yield Difference(number, "voice_to_voice_ms", f"at most {most:g}", took)
    for name, wanted in expected.counters.items():
        if (was := trace.counters.get(name, 0)) != wanted:
            yield Difference(number, f"counters.{name}", wanted, was)
