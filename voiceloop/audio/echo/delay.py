"""Finds how much later a loudspeaker is heard in the microphone than its samples were played.

What drivers say of their delays is often wrong by tens of milliseconds, and by hundreds with
Bluetooth. So the delay is measured: by the generalised cross-correlation with phase transform
(Knapp and Carter 1976) of what was played and what was recorded.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, dbfs, samples, silence
from voiceloop.types import Pcm

WINDOW = 16_384
"""Samples that are compared: about a second at 16 kHz."""
STEP = WINDOW // 4
"""Samples from one comparison to the next."""
EARLIEST_MS, LATEST_MS = -150, 550
"""Delays that can be found, in milliseconds."""
KEEP = 0.75
"""Share of the older comparisons in the sum."""
CLEAR = 15.0
"""How many standard deviations a peak must rise above the other delays."""
QUIET_DBFS = -55.0
"""Level below which what is played has no echo to measure."""
MOST = 60
"""Delays from which drift is measured."""
APART = 3 * SPEECH_RATE
"""Samples between two delays from which a slope can be told."""
ENOUGH = 10
"""Slopes from which drift is known."""
SAME = samples(2)
"""Two peaks that are no further apart than this, in samples, are the same delay."""


class DelayEstimator:
    """Measures the delay while something sounds."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all that was played and recorded."""
        self._played, self._recorded = silence(WINDOW), silence(WINDOW)
        self._fresh = 0
        """Samples since the last comparison."""
        self._sum = np.zeros(WINDOW + 1, np.complex64)
        self._before: float | None = None
        """The peak of the comparison before, if it was clear."""

    def feed(self, recorded: Pcm, played: Pcm) -> float | None:
        """Add a block of both. Return the delay in samples once two comparisons agree."""
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
        """Return the delay of the highest correlation, or None if no delay stands out."""
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
    """Return the place of the top of a parabola through three points, from the one in the
    middle."""
    return 0.5 * (left - right) / (left - 2 * middle + right)


class DriftEstimator:
    """Measures by how much one of the two clocks is faster, from delays that were measured."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque(maxlen=MOST)

    def feed(self, at: int, delay: float) -> float | None:
        """Add the delay, in samples, that was measured at sample `at`. Return how many samples the
        delay grows with each sample, once enough is known: the median of the slopes between all
        pairs (Theil 1950), which single wrong delays do not disturb."""
        self._seen.append((at, delay))
        times, delays = np.array(self._seen).T
        early, late = np.triu_indices(len(times), 1)
        apart = times[late] - times[early]
        far = apart >= APART
        if np.count_nonzero(far) < ENOUGH:
            return None
        return float(np.median((delays[late] - delays[early])[far] / apart[far]))
