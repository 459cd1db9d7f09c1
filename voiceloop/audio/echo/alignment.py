"""Finds, for each block that a microphone records, the block of the loudspeaker that it may echo.

The two streams are counted in samples. Their times say how the counts begin; the delay of the echo
is measured from then on. So are the clocks: two devices have two, and one of them is faster.
"""

from __future__ import annotations

import numpy as np

from voiceloop.audio.echo.delay import LATEST_MS, DelayEstimator, DriftEstimator
from voiceloop.audio.echo.kalman import BLOCK
from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, samples, silence
from voiceloop.types import Pcm

LEAD = samples(20)
"""Samples by which a played sample is given out before its echo comes."""
SLACK = samples(15)
"""How far from `LEAD` the echo may come before the streams are aligned anew."""
TAPS, KAISER = 32, 6.0
"""Length and shape of the filter that reads between two samples."""


class Alignment:
    """Reads what a loudspeaker plays in step with what a microphone records."""

    def __init__(self, played: SampleBuffer) -> None:
        """`played` has what the loudspeaker plays, before it sounds. Older samples are dropped."""
        self.delay_ms: float | None = None
        """Measured time by which the echo comes later than the streams' times say; None until it is
        known."""
        self._played = played
        self._delays, self._drift = DelayEstimator(), DriftEstimator()
        self._recorded = 0
        """Recorded samples so far."""
        self._place = 0.0
        """Place in `played` of the next block."""
        self._rate = 1.0
        """Played samples in the time of a recorded one."""
        self._ahead = 0
        """How many more samples were played than recorded by the streams' times."""

    def begin(self, ahead: int) -> None:
        """Begin with the streams' times. By them, sample `n + ahead` of what is played sounded when
        sample `n` was recorded."""
        self._ahead, self._place, self.delay_ms = ahead, self._recorded + ahead + LEAD, None
        self._delays.reset()

    def read(self) -> Pcm:
        """Return the next block of what was played, with silence for what is not held."""
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
        """Measure delay and drift by a block of both. Return True if the streams had to be aligned
        anew."""
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
    """Return the filter that reads a signal between two samples, at that `share` of the way: a sinc
    with a Kaiser window."""
    place = TAPS // 2 - 1 + share - np.arange(TAPS)
    window = np.i0(KAISER * np.sqrt(np.maximum(0, 1 - (2 * place / TAPS) ** 2)))
    taps = np.sinc(place) * window
    return (taps / taps.sum())[::-1].astype(np.float32)
