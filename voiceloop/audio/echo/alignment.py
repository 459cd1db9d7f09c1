"""Aligns the signal of a loudspeaker with the signal of a microphone that records its echo.

Both signals are counted in samples. At first the devices' times tell which played sample sounded
when a sample was recorded. These times may be wrong, so the delay of the echo is measured. The
drift between the clocks of the two devices is measured too.
"""

from __future__ import annotations

import numpy as np

from voiceloop.audio.echo.delay import LATEST_MS, DelayEstimator, DriftEstimator
from voiceloop.audio.echo.kalman import BLOCK
from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, samples, silence
from voiceloop.types import Pcm

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
