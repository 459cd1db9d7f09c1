"""Evaluates how sessions react to sounds that a user makes while a reply plays.

Times count from the true first voiced sample of the sound, because a voice detector cannot find the
noise with which a cough begins. This module knows neither engines nor clocks.
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
"""Length of the voice detector's window, in seconds. A pause of the reply that begins at most this
long before the sound counts as caused by the sound."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """The effect of a sound on the reply that was playing."""

    clip: str
    kind: InterruptionKind
    text: str
    """The words of the sound; empty for a cough."""
    trigger_ms: float | None
    """Milliseconds from the first voiced sample of the sound until the reply was paused. For a
    sound without voice, the first audible sample counts. Negative if noise before the voice paused
    the reply; None if nothing paused it."""
    decided_ms: float | None
    """Milliseconds from a pause of the reply to the verdict; the longest if there were several."""
    pauses: int
    """Times that the sound paused the reply."""
    verdict: Verdict | None
    """`interrupt` if one of the pauses ended the reply, otherwise `resume`; None without a
    pause."""
    stop_ms: float | None
    """Milliseconds from the first pause until the reply was silent; None without a pause."""
    outcome: str
    """The outcome of the reply's turn."""
    heard: str
    """The part of the reply that was heard."""


def reaction(clip: LabClip, take: Take) -> Reaction | None:
    """Return the reaction to the interruption of `clip`; None if no reply played at that time."""
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
    """Return the turn whose reply was playing at `moment`; None if there was none."""
    for trace in take.traces:
        first = trace.marks.get(Mark.FIRST_SOUND)
        last = trace.marks.get(Mark.SOUND_END)
        if first is not None and first <= moment and (last is None or moment < last):
            return trace
    return None


def _stopped_ms(reply: TurnTrace, paused: float) -> float:
    """Return the ms from `paused` to the end of the sound that played then; 0 if none played."""
    stretches: list[StageSpan] = [span for span in reply.spans if span.lane == Lane.SPEAKER]
    return max((_ms(s.end - paused) for s in stretches if s.start <= paused <= s.end), default=0.0)


def interruptions(reactions: Sequence[Reaction]) -> dict[str, Any]:
    """Return the figures of interruptions: totals by kind, totals of all, and each one."""
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
