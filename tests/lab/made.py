"""Clips of the lab of which everything is known, and judgements in takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.conversations.clips import Interruption, InterruptionKind, LabClip, Pause, PausedSaid
from lab.conversations.sentences import Standing
from tests.bench.made import BEGAN, END, at
from voiceloop.trace.record import Lane, Recorder


def clip(
    name: str = "a-000",
    pauses: Sequence[tuple[Standing, float, float]] = (),
    *,
    text: str = "what is the time",
    interruption: tuple[InterruptionKind, str] | None = None,
) -> LabClip:
    """Something said from 0.5 to `END` seconds, with pauses (standing, start, end)."""
    silence = np.zeros(at(0.1), np.float32)
    made = tuple(Pause(2, "what is", how, at(start), at(end)) for how, start, end in pauses)
    sound = None
    if interruption is not None:
        kind, words = interruption
        sound = Interruption(kind, words, np.ones(at(0.3), np.float32), at(0.01), at(0.29), 500.0)
    said = PausedSaid(text, at(0.5), at(END), pauses=made)
    return LabClip(name, silence, silence, said, interruption=sound)


def judge(
    recorder: Recorder, begun: float, known: float, text: str, probability: float
) -> Recorder:
    """Add a judgement of whether the turn ends after `text`."""
    recorder.span(Lane.PREFILL, "prefill", BEGAN + begun, BEGAN + known, text=text)
    recorder.span(
        Lane.VAD, "end of turn?", BEGAN + begun, BEGAN + known, probability=probability, text=text
    )
    return recorder
