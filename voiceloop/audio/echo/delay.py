"""Measures the delay of a loudspeaker's echo in a microphone, and the drift between their clocks.

Delays that drivers report are often wrong by tens of milliseconds, and by hundreds with Bluetooth.
So the delay is measured by the generalised cross-correlation with phase transform (Knapp and Carter
1976) of the played and the recorded signal.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, dbfs, samples, silence
from voiceloop.types import Pcm

WINDOW = 16_384
"""Number of samples in one comparison: about a second at 16 kHz."""
STEP = WINDOW // 4
"""Samples from one comparison to the next."""
EARLIEST_MS, LATEST_MS = -150, 550
"""Smallest and largest delay that can be found, in milliseconds. A delay is negative if the echo
seems to come before the sound is played."""
KEEP = 0.75
"""Factor by which the sum of earlier comparisons is multiplied before a new one is added."""
CLEAR = 15.0
"""Minimum height of a peak of the correlation that counts as an echo, in standard deviations of the
correlation."""
QUIET_DBFS = -55.0
"""Level in dBFS below which the played signal is too soft to measure its echo."""
MOST = 60
"""Maximum number of delays from which drift is computed. The newest ones are used."""
APART = 3 * SPEECH_RATE
"""Minimum time in samples between two measured delays for which a slope is computed."""
ENOUGH = 10
"""Minimum number of slopes from which drift is computed."""
SAME = samples(2)
"""Maximum difference in samples between two peaks that count as the same delay."""


class DelayEstimator:
    """Measures the delay of the echo while the loudspeaker sounds."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all that was played and recorded."""
        self._played, self._recorded = silence(WINDOW), silence(WINDOW)
        self._fresh = 0
        """Samples since the last comparison."""
        self._sum = np.zeros(WINDOW + 1, np.complex64)
        self._before: float | None = None
        """Delay at the peak of the previous comparison, in samples; None if no peak was clear."""

    def feed(self, recorded: Pcm, played: Pcm) -> float | None:
        """Add the next block of both signals. Return the delay of the echo in samples if two
        successive comparisons agree, otherwise None."""
        self._played = np.concatenate((self._played[len(played) :], played))
        self._recorded = np.concatenate((self._recorded[len(recorded) :], recorded))
        self._fresh += len(recorded)
        if self._fresh < STEP or dbfs(self._played[-2 * STEP :]) < QUIET_DBFS:
            return None
        self._fresh = 0
        before, self._before = self._before, self._peak()
        if before is None or self._before is None or abs(before - self._before) > SAME:
            return None
        return self._before

    def _peak(self) -> float | None:
        """Return the delay in samples at the highest peak of the correlation, or None if no peak
        stands out."""
        played, recorded = (np.fft.rfft(pcm, 2 * WINDOW) for pcm in (self._played, self._recorded))
        cross = recorded * played.conj()
        self._sum = KEEP * self._sum + cross / (np.abs(cross) + 1e-9)
        every = np.fft.irfft(self._sum)
        early, late = samples(-EARLIEST_MS), samples(LATEST_MS)
        near = np.concatenate((every[-early:], every[:late]))
        at = int(np.argmax(near))
        if near[at] < CLEAR * np.std(near):
            return None
        return float(at - early + _top(*near[at - 1 : at + 2])) if 0 < at < len(near) - 1 else None


def _top(left: float, middle: float, right: float) -> float:
    """Return where the parabola through three neighbouring points is highest, relative to the
    middle one."""
    return 0.5 * (left - right) / (left - 2 * middle + right)


class DriftEstimator:
    """Computes the drift between two clocks from measured delays."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque(maxlen=MOST)

    def feed(self, at: int, delay: float) -> float | None:
        """Add a `delay` in samples that was measured at sample `at`. Return the growth of the delay
        per sample, or None while too little is known. The growth is the median of the slopes
        between all pairs of delays (Theil 1950), so single wrong delays do not matter."""
        self._seen.append((at, delay))
        times, delays = np.array(self._seen).T
        early, late = np.triu_indices(len(times), 1)
        apart = times[late] - times[early]
        far = apart >= APART
        if np.count_nonzero(far) < ENOUGH:
            return None
        return float(np.median((delays[late] - delays[early])[far] / apart[far]))
