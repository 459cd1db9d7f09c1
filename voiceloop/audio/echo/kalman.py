"""An adaptive filter that learns the echo path, and subtracts the echo.

It is the partitioned-block frequency-domain Kalman filter (Enzner and Vary 2006; Kuech, Mabande and
Enzner 2014). The echo path from loudspeaker to microphone is an impulse response, divided into
partitions of one block each. The filter estimates the spectrum of every partition, and the variance
of each estimate. So it learns fast while it knows little, and slowly once it knows much. It hardly
learns while the user speaks: if the error grows and the playback does not, the cause is the user's
voice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voiceloop.types import Pcm

BLOCK = 160
"""Samples of a block: 10 ms at 16 kHz."""
TAIL_MS = 250
"""Length of the impulse response in milliseconds. Later reflections are left to the next stage."""
STABLE = 0.9999
"""Transition factor of the Kalman filter (A in the papers): the share of the impulse response that
remains from one block to the next."""
FIRST_GUESS = 3.0
"""Variance of the first partition's spectrum before anything is known."""
DECAY_DB = 3.0
"""Expected decay in dB of the impulse response from each partition of 10 ms to the next."""
SMOOTHING = 0.7
"""Share of the old estimate of `_near` in the new one."""
TINY = 1e-8


class KalmanFilter:
    """Predicts the echo of the loudspeaker in the microphone's signal, and subtracts it."""

    def __init__(self, tail_ms: int = TAIL_MS) -> None:
        self._partitions = tail_ms * 16 // BLOCK
        shape = (self._partitions, BLOCK + 1)
        self._played = np.zeros(shape, np.complex64)
        """Spectra of the played signal, the newest first. Each covers two blocks."""
        self._way = np.zeros(shape, np.complex64)
        """Estimated spectrum of each partition of the echo path."""
        fall = 10 ** (-DECAY_DB / 10 * np.arange(self._partitions, dtype=np.float32))
        self._unsure = (FIRST_GUESS * np.ones(shape, np.float32)) * fall[:, None]
        """Variance of the estimate of each bin of `_way`."""
        self._near = np.zeros(BLOCK + 1, np.float32)
        """Power spectrum of what the filter cannot predict: the user and noise."""
        self._last = np.zeros(BLOCK, np.float32)

    def cancel(self, recorded: Pcm, played: Pcm) -> Pcm:
        """Return a block of the microphone without its echo. `played` is the block that the
        loudspeaker played at that time. Its echo may come up to `TAIL_MS` later."""
        self._played = np.roll(self._played, 1, axis=0)
        self._played[0] = _spectrum(np.concatenate((self._last, played)))
        self._last = played
        echo = np.fft.irfft(np.einsum("pk,pk->k", self._played, self._way))[BLOCK:]
        error = (recorded - echo).astype(np.float32)
        self._learn(error)
        return error

    def _learn(self, error: Pcm) -> None:
        """Update the filter with the error of one block."""
        spectrum = _spectrum(np.concatenate((np.zeros(BLOCK, np.float32), error)))
        power = np.abs(self._played) ** 2
        self._near = SMOOTHING * self._near + (1 - SMOOTHING) * np.abs(spectrum) ** 2
        expected = np.einsum("pk,pk->k", power, self._unsure) + 2 * self._near + TINY
        gain = self._unsure / expected
        step = np.fft.irfft(gain * self._played.conj() * spectrum)
        step[:, BLOCK:] = 0  # a partition has no more than a block of taps
        self._way = STABLE * (self._way + np.fft.rfft(step).astype(np.complex64))
        kept = np.clip(1 - 0.5 * gain * power, 0, 1) * self._unsure
        self._unsure = STABLE**2 * kept + (1 - STABLE**2) * np.abs(self._way) ** 2


def _spectrum(pcm: Pcm) -> npt.NDArray[np.complex64]:
    return np.fft.rfft(pcm).astype(np.complex64)
