"""Aligns the signal of a loudspeaker with the signal of a microphone that records its echo.

Both signals are counted in samples. At first the devices' times tell which played sample sounded
when a sample was recorded. Times that drivers report are often wrong by tens of milliseconds, and
by hundreds with Bluetooth. So the delay of the echo is measured too, by the generalised
cross-correlation with phase transform (Knapp and Carter 1976) of the played and the recorded
signal, and with it the drift between the clocks of the two devices.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from voiceloop.audio.frames import (
    SPEECH_RATE,
    SampleBuffer,
    dbfs,
    samples,
    silence,
)
from voiceloop.types import Pcm

BLOCK = 160
"""Samples of a block: 10 ms at 16 kHz."""
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


LEAD = samples(20)
"""The played signal is read this many samples ahead, so that its echo always comes later. The
filter cannot learn an echo that comes earlier."""
SLACK = samples(15)
"""The signals are aligned anew if the delay of the echo differs from `LEAD` by more than this many
samples."""
TAPS, KAISER = 32, 6.0
"""Length and shape of the filter that reads between two samples."""


class Alignment:
    """Reads the signal of a loudspeaker in step with the signal of a microphone."""

    def __init__(self, played: SampleBuffer) -> None:
        """Read from `played`. The caller must append the loudspeaker's samples at 16 kHz before
        they sound. `read` drops old samples."""
        self.delay_ms: float | None = None
        """Milliseconds by which the echo comes later than the devices' times say; negative if it
        comes earlier. None until it is measured."""
        self._played = played
        self._delays, self._drift = DelayEstimator(), DriftEstimator()
        self._recorded = 0
        """Recorded samples so far."""
        self._place = 0.0
        """Index of the sample in `played` at which the next block begins. It may lie between two
        samples."""
        self._rate = 1.0
        """Number of played samples for each recorded one. It differs from 1 if the clocks
        differ."""
        self._ahead = 0
        """Offset between played and recorded samples by the devices' times: played sample `n +
        _ahead` sounded when sample `n` was recorded."""

    def begin(self, ahead: int) -> None:
        """Align the signals by the devices' times: played sample `n + ahead` sounded when sample
        `n` was recorded. Forget the measured delay."""
        self._ahead, self._place, self.delay_ms = ahead, self._recorded + ahead + LEAD, None
        self._delays.reset()

    def read(self) -> Pcm:
        """Return the next block of the played signal. Samples that `played` does not hold are
        silence."""
        whole, between = divmod(self._place, 1.0)
        start = int(whole) - TAPS // 2 + 1
        block, held = silence(BLOCK + TAPS - 1), self._played
        first, last = max(start, held.start), min(start + len(block), held.end)
        if first < last:
            block[first - start : last - start] = held.read(first, last)
        held.drop(start - samples(2 * LATEST_MS))
        self._place += BLOCK * self._rate
        self._recorded += BLOCK
        return np.convolve(block, _between(between), "valid").astype(np.float32)

    def follow(self, recorded: Pcm, played: Pcm) -> bool:
        """Measure delay and drift with the next block of both signals. Return True if the signals
        were aligned anew."""
        measured = self._delays.feed(recorded, played)
        if measured is None:
            return False
        late = measured + self._recorded + self._ahead - self._place
        self.delay_ms = late * 1000 / SPEECH_RATE
        growth = self._drift.feed(self._recorded, late)
        if growth is not None:
            self._rate = 1.0 - growth
        wrong = round(measured) - LEAD
        if abs(wrong) <= SLACK:
            return False
        self._place -= wrong
        self._delays.reset()
        return True


def _between(share: float) -> Pcm:
    """Return the filter that interpolates between two samples, at the `share` of the way from the
    first to the second: a sinc with a Kaiser window."""
    place = TAPS // 2 - 1 + share - np.arange(TAPS)
    window = np.i0(KAISER * np.sqrt(np.maximum(0, 1 - (2 * place / TAPS) ** 2)))
    taps = np.sinc(place) * window
    return (taps / taps.sum())[::-1].astype(np.float32)
