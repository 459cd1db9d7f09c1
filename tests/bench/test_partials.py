"""How far partial transcripts are behind the speaker."""

from __future__ import annotations

import pytest

from tests.bench.made import BEGAN, answered, take
from voiceloop.bench.partials import behind, partial_figures
from voiceloop.trace.record import Lane, Recorder

pytestmark = pytest.mark.pure


def decode(recorder: Recorder, name: str, until: float, begun: float, ended: float) -> None:
    """A decode of the audio up to `until`."""
    recorder.span(Lane.ASR, name, BEGAN + begun, BEGAN + ended, until_s=until)


def test_a_partial_is_behind_until_the_next_transcript_comes() -> None:
    turn = answered()
    decode(turn, "partial", 1.0, 1.01, 1.2)
    decode(turn, "partial", 1.3, 1.3, 1.45)
    decode(turn, "final", 2.0, 2.1, 2.3)
    first, second = behind(take(turn.trace("done")))
    assert (first.begun, first.arrived) == pytest.approx((10, 200))
    assert first.replaced == pytest.approx(450)
    assert (second.begun, second.arrived) == pytest.approx((0, 150))
    assert second.replaced == pytest.approx(1000)


def test_turns_are_apart_and_nothing_is_nothing() -> None:
    turns = [answered(1), answered(2)]
    for turn, at in zip(turns, (1.0, 5.0), strict=True):
        decode(turn, "partial", at, at, at + 0.1)
    found = behind(take(*(turn.trace("done") for turn in turns)))
    assert [one.replaced for one in found] == [None, None]
    figures = partial_figures(found)
    assert figures["partials"] == 2
    assert figures["behind_ms"]["p50"] == pytest.approx(100)
    assert figures["before_the_next_ms"] == {"p50": None, "p95": None}
    assert partial_figures([])["behind_ms"] == {"p50": None, "p95": None}
