"""The clips of the bench: the sound of one turn, with its words and the place of the speech.

Positions are indices of samples at 16 kHz, from the beginning of the clip. An end is the index
after the last sample. A sample belongs to speech if it is audible (`playback.AUDIBLE`) before any
noise is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voiceloop.audio.playback import AUDIBLE
from voiceloop.types import Pcm


@dataclass(frozen=True, slots=True)
class ClipSpeech:
    """The words of a clip, and where they are spoken. Values that are not known are None."""

    text: str | None = None
    start: int | None = None
    """Index of the first audible sample."""
    end: int | None = None
    """Index of the sample after the last audible one: the true end of speech."""


@dataclass(frozen=True, slots=True)
class Clip:
    """The sound of one turn at the microphone: some silence, then speech, and at last only noise
    without end."""

    name: str
    pcm: Pcm
    background: Pcm
    """Noise that is repeated without end. `pcm` contains it already, and after `pcm` it goes on."""
    said: ClipSpeech

    def read(self, start: int, count: int) -> Pcm:
        """Return `count` samples from `start` on. After the end of `pcm` there is only noise."""
        at = np.arange(start, start + count)
        heard = self.background[at % len(self.background)]
        inside = at < len(self.pcm)
        heard[inside] = self.pcm[at[inside]]
        return heard


def audible(pcm: Pcm) -> tuple[int, int]:
    """Return the index of the first audible sample of `pcm`, and the index after the last one. At
    least one sample must be audible."""
    loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
    return int(loud[0]), int(loud[-1]) + 1
