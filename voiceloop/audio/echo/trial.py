"""Judges whether an echo canceller removes the echo, from the levels of its input and output."""

from __future__ import annotations

import math
from enum import Enum, auto

import numpy as np

from voiceloop.audio.frames import FRAME_MS
from voiceloop.types import Pcm

REMOVED_DB, FAINT_DBFS = 12.0, -55.0
"""The echo counts as removed if the canceller lowers the level by `REMOVED_DB`, or to `FAINT_DBFS`
or less."""
TRIAL_MS = 300
"""Milliseconds of sound from which one judgement is made."""
NO_ECHO_MS = 1500
"""If the delay of the echo has not been found after this many milliseconds of sound, there is
probably no echo, and the trial begins."""
GIVE_UP_MS = 4000
"""Milliseconds of sound after which an echo that is not removed counts as not removable."""


class Duplex(Enum):
    """Whether the user is heard while something sounds."""

    TRYING = auto()
    """Not yet: it is not known whether the echo is removed."""
    FULL = auto()
    """Yes: the echo is removed."""
    HALF = auto()
    """No: the echo could not be removed so far."""


class Trial:
    """Tries an echo canceller from the first sound on, until it removes the echo."""

    def __init__(self) -> None:
        self.duplex = Duplex.TRYING
        self._sounded_ms = self._judged_ms = 0
        self._recorded = self._left = 0.0
        """Energy before (`_recorded`) and after (`_left`) the canceller since the last
        judgement."""

    def feed(self, recorded: Pcm, left: Pcm, *, found: bool) -> None:
        """Add a block while something sounds: `recorded` is the input of the canceller, and `left`
        its output. `found` says whether the delay of the echo is known."""
        self._sounded_ms += FRAME_MS
        if self.duplex is Duplex.FULL or not (found or self._sounded_ms > NO_ECHO_MS):
            return
        self._recorded += float(np.mean(np.square(recorded, dtype=np.float64)))
        self._left += float(np.mean(np.square(left, dtype=np.float64)))
        self._judged_ms += FRAME_MS
        if self._judged_ms == TRIAL_MS:
            self._judge()

    def _judge(self) -> None:
        recorded, left = (
            10 * math.log10(energy * FRAME_MS / TRIAL_MS + 1e-12)
            for energy in (self._recorded, self._left)
        )
        if recorded - left >= REMOVED_DB or left <= FAINT_DBFS:
            self.duplex = Duplex.FULL
        elif self._sounded_ms >= GIVE_UP_MS:
            self.duplex = Duplex.HALF
        self._recorded = self._left = 0.0
        self._judged_ms = 0
