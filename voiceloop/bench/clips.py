"""Clips: what a microphone hears in one turn of the bench, and the truth about it.

Positions are samples at 16 kHz from the beginning of the clip. An end is the sample after the last.
A sample belongs to speech if it is audible (`playback.AUDIBLE`) before any noise is added. Values
that are not known are None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voiceloop.audio.playback import AUDIBLE
from voiceloop.types import Pcm


@dataclass(frozen=True, slots=True)
class ClipSpeech:
    """What the user says in a clip."""

    text: str | None = None
    start: int | None = None
    """The first audible sample."""
    end: int | None = None
    """The sample after the last audible one: the true end of speech."""


@dataclass(frozen=True, slots=True)
class Clip:
    """One turn as the microphone hears it: some silence, speech, and background without end."""

    name: str
    pcm: Pcm
    background: Pcm
    """Noise that repeats without end. It is already part of `pcm`, and goes on after it."""
    said: ClipSpeech

    def read(self, start: int, count: int) -> Pcm:
        """Return `count` samples from `start` on. After the end of `pcm` there is only noise."""
        at = np.arange(start, start + count)
        heard = self.background[at % len(self.background)]
        inside = at < len(self.pcm)
        heard[inside] = self.pcm[at[inside]]
        return heard


def audible(pcm: Pcm) -> tuple[int, int]:
    """Return the first audible sample of `pcm` and the one after the last; there must be one."""
    loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
    return int(loud[0]), int(loud[-1]) + 1
