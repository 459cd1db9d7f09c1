"""What takes say of sounds that were made while the reply played."""

from __future__ import annotations

import pytest

from lab.conversations.clips import InterruptionKind, LabClip
from lab.conversations.interruptions import interruptions, reaction
from tests.bench.made import BEGAN, answered, take
from tests.lab.made import clip
from voiceloop.bench.takes import Take
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.types import Outcome

pytestmark = pytest.mark.pure

SOUND = 3.0
"""When the interruption's first audible sample is recorded."""


def interrupted(kind: InterruptionKind = "cough", text: str = "") -> LabClip:
    return clip(interruption=(kind, text))


def played(
    *verdicts: tuple[str, float, float], outcome: Outcome = "done", ends: float = 6.0
) -> Take:
    """A reply that sounds until the first verdict's pause, and then until `ends`.

    `verdicts` are their names with the times of pause and decision after the sound.
    """
    reply = answered(1)
    since = BEGAN + 2.3
    for _, paused, decided in verdicts:
        stopped = BEGAN + SOUND + paused + 0.005
        reply.span(Lane.SPEAKER, "sound", since, stopped)
        since = BEGAN + SOUND + decided
    if outcome == "done":
        reply.span(Lane.SPEAKER, "sound", since, BEGAN + ends)
    reply.mark(Mark.SOUND_END, BEGAN + ends)
    candidate = Recorder(2)
    for name, paused, decided in verdicts:
        candidate.span(Lane.VAD, name, BEGAN + SOUND + paused, BEGAN + SOUND + decided)
    traces = (reply.trace(outcome, "so it"), candidate.trace("abandoned"))
    # The sound begins 10 ms before it is audible.
    return take(*traces, interrupted=SOUND - 0.01)


def test_a_reply_that_goes_on_has_been_paused_and_resumed() -> None:
    found = reaction(interrupted(), played(("resume", 0.09, 0.4)))
    assert found is not None
    assert found.trigger_ms == pytest.approx(90, abs=0.1)
    assert found.decided_ms == pytest.approx(310, abs=0.1)
    assert found.stop_ms == pytest.approx(5, abs=0.1)
    assert (found.verdict, found.pauses, found.outcome, found.heard) == (
        "resume",
        1,
        "done",
        "so it",
    )


def test_a_sound_after_the_reply_or_without_one_is_left_out() -> None:
    assert reaction(interrupted(), played(ends=SOUND - 0.1)) is None
    assert reaction(clip(), played()) is None
    assert reaction(interrupted(), take(answered().trace("done"))) is None


def test_totals_count_each_kind() -> None:
    takes = {
        "cough": [played(("resume", 0.1, 0.3)), played()],
        "words": [played(("interrupt", 0.2, 0.6), outcome="interrupted")],
    }
    found = [
        reaction(interrupted(kind), one)  # pyright: ignore[reportArgumentType]
        for kind, own in takes.items()
        for one in own
    ]
    record = interruptions([one for one in found if one])
    assert set(record["kinds"]) == {"words", "cough"}
    cough, whole = record["kinds"]["cough"], record["all"]
    assert (cough["sounds"], cough["triggered"], cough["resumed"], cough["interrupted"]) == (
        *(2, 1, 1, 0),
    )
    assert cough["trigger_ms"]["p50"] == pytest.approx(100, abs=0.1)
    assert (whole["sounds"], whole["triggered"], whole["interrupted"]) == (3, 2, 1)
    assert whole["played_to_the_end"] == 2
    assert len(record["each"]) == 3
    assert interruptions([])["all"]["trigger_ms"] == {"p50": None, "p95": None}
