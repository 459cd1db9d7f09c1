"""Compares the newest audio of a stream with its background, to find speech and pauses by their
loudness."""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from voiceloop.audio.frames import SILENCE_DBFS, levels, samples
from voiceloop.types import AudioFrame, Pcm

STEP = 64
"""Samples in a step; each step has one level."""
FLOOR_MS = 400
"""Milliseconds of recent audio from which the background level is estimated."""
FLOOR_SHARE = 0.1
"""Quantile of the recent levels that is taken as the background level."""
HUSH_MS = 24
"""Milliseconds of quiet that count as the beginning of a pause."""
ABOVE_FLOOR_DB = 5.0
BELOW_PEAK_DB = 40.0
"""Limits in decibels. Speech is louder than the background plus `ABOVE_FLOOR_DB`, and louder than
its own peak minus `BELOW_PEAK_DB`."""
PAUSE_BELOW_PEAK_DB = 10.0
"""A pause is at least this many decibels softer than the peak of the speech. Without this limit, a
constant sound would count as background, and so as a pause."""


class Loudness:
    """The recent levels of one stream at 16 kHz."""

    def __init__(self) -> None:
        self._levels = np.zeros(0)
        """Levels in dBFS of the newest steps, without those of the windows in `_quiet`."""
        self._quiet = deque[Pcm]()
        """Newest windows outside of any turn. Their levels are computed only when a turn follows,
        since most streams are silent most of the time."""
        self._peak = SILENCE_DBFS
        """Highest level in dBFS of the present speech."""

    def skip(self, frame: AudioFrame) -> None:
        """Take a window outside of any turn."""
        self.forget_peak()
        self._quiet.append(frame.pcm)
        if (len(self._quiet) - 1) * len(frame.pcm) >= samples(FLOOR_MS):
            self._quiet.popleft()

    def take(self, frame: AudioFrame, *, voiced: bool) -> None:
        """Take a window of a turn, or of a sound that may become one. Only `voiced` windows raise
        the peak."""
        found = [levels(pcm, STEP) for pcm in (*self._quiet, frame.pcm)]
        self._quiet.clear()
        self._levels = np.concatenate((self._levels, *found))[-samples(FLOOR_MS) // STEP :]
        if voiced:
            self._peak = max(self._peak, float(found[-1].max(initial=SILENCE_DBFS)))

    def forget_peak(self) -> None:
        """Forget the peak of the speech, because other speech follows."""
        self._peak = SILENCE_DBFS

    def hushed(self, rest: Pcm | None = None) -> bool:
        """Return whether the last `HUSH_MS` are as quiet as a pause. `rest` is audio that has
        arrived after the last window."""
        heard: npt.NDArray[np.float64] = self._levels
        if rest is not None:
            heard = np.concatenate((heard, levels(rest[: len(rest) // STEP * STEP], STEP)))
        loudest = float(heard[-samples(HUSH_MS) // STEP :].max(initial=SILENCE_DBFS))
        return loudest <= min(self._speech_level, self._peak - PAUSE_BELOW_PEAK_DB)

    def last_loud(self, seen: int, first: int, last: int) -> int | None:
        """Find the last step between samples `first` and `last` that is loud enough for speech.
        Return the index of the sample after it, or None if there is no loud step. `seen` is the
        index of the first sample that has not been taken yet."""
        begun = seen - len(self._levels) * STEP
        first, last = max(begun, first), min(seen, last)
        near = self._levels[(first - begun) // STEP : (last - begun) // STEP]
        loud = np.flatnonzero(near > self._speech_level)
        return first + (int(loud[-1]) + 1) * STEP if len(loud) else None

    @property
    def _speech_level(self) -> float:
        """The level in decibels above which a step is as loud as speech."""
        quieter = int(len(self._levels) * FLOOR_SHARE)
        floor = float(np.partition(self._levels, quieter)[quieter])
        return max(floor + ABOVE_FLOOR_DB, self._peak - BELOW_PEAK_DB)
