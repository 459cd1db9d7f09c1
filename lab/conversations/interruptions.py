"""What came of the sounds that a user makes while the answer plays.

The pause is counted from the sound's true first voiced sample: a voice detector has nothing to find
in the noise with which a cough begins. Knows neither engines nor clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from lab.conversations.clips import InterruptionKind, LabClip
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.bench.record import spread
from voiceloop.bench.takes import Take
from voiceloop.trace.record import Lane, Mark
from voiceloop.types import StageSpan, TurnTrace

Verdict = Literal["resume", "interrupt"]
SLACK_S = 0.032
"""The voice detector's window: what pauses the reply so little before the sound is the sound."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a sound did to the reply that was playing."""

    clip: str
    kind: InterruptionKind
    text: str
    """What was said; nothing for a cough."""
    trigger_ms: float | None
    """From the sound's first voiced sample, or the first audible one where it has no voice, until
    the reply was paused; below 0 where its noise did that. None where the reply went on."""
    decided_ms: float | None
    """From there to the verdict; of several pauses the longest."""
    pauses: int
    """Times that the sound paused the reply."""
    verdict: Verdict | None
    """`interrupt` if any of those ended it."""
    stop_ms: float | None
    """From the first pause until nothing of the reply sounded."""
    outcome: str
    """Of the reply's turn."""
    heard: str
    """What was heard of the reply."""


def reaction(clip: LabClip, take: Take) -> Reaction | None:
    """What the interruption of `clip` did; None where there was none while the reply played."""
    sound, first = clip.interruption, take.interrupted
    if sound is None or first is None:
        return None
    began = take.began + (first + sound.start) / SPEECH_RATE
    reply = _sounding(take, began)
    if reply is None:
        return None
    verdicts = [
        span
        for trace in take.traces
        for span in trace.spans
        if span.lane == Lane.VAD
        and span.name in get_args(Verdict)
        and span.start >= began - SLACK_S
    ]
    paused = min((span.start for span in verdicts), default=None)
    ended = any(span.name == "interrupt" for span in verdicts)
    unvoiced = 0 if sound.voiced is None else sound.voiced - sound.start
    return Reaction(
        clip.name,
        sound.kind,
        sound.text,
        None if paused is None else _ms(paused - began - unvoiced / SPEECH_RATE),
        max((_ms(span.end - span.start) for span in verdicts), default=None),
        len(verdicts),
        None if paused is None else "interrupt" if ended else "resume",
        None if paused is None else _stopped_ms(reply, paused),
        reply.outcome,
        reply.heard,
    )


def _sounding(take: Take, moment: float) -> TurnTrace | None:
    """The turn whose reply had begun to sound by `moment`, and had not ended."""
    for trace in take.traces:
        first = trace.marks.get(Mark.FIRST_SOUND)
        last = trace.marks.get(Mark.SOUND_END)
        if first is not None and first <= moment and (last is None or moment < last):
            return trace
    return None


def _stopped_ms(reply: TurnTrace, paused: float) -> float:
    """From `paused` until the stretch of sound ended in which that was; 0 in a gap between two."""
    stretches: list[StageSpan] = [span for span in reply.spans if span.lane == Lane.SPEAKER]
    return max((_ms(s.end - paused) for s in stretches if s.start <= paused <= s.end), default=0.0)


def interruptions(reactions: Sequence[Reaction]) -> dict[str, Any]:
    """The record of interruptions: totals of each kind, and each of them."""
    kinds = {kind: [one for one in reactions if one.kind == kind] for kind in _KINDS}
    return {
        "kinds": {kind: _totals(own) for kind, own in kinds.items() if own},
        "all": _totals(reactions),
        "each": [asdict(one) for one in reactions],
    }


_KINDS: tuple[InterruptionKind, ...] = get_args(InterruptionKind)


def _totals(own: Sequence[Reaction]) -> dict[str, Any]:
    return {
        "sounds": len(own),
        "triggered": sum(one.pauses > 0 for one in own),
        "resumed": sum(one.verdict == "resume" for one in own),
        "interrupted": sum(one.verdict == "interrupt" for one in own),
        "played_to_the_end": sum(one.outcome == "done" for one in own),
        "trigger_ms": spread(one.trigger_ms for one in own),
        "decided_ms": spread(one.decided_ms for one in own),
        "stop_ms": spread(one.stop_ms for one in own),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
