"""An adaptive filter that learns the way from the loudspeaker to the microphone, and subtracts it.

It is the partitioned-block frequency-domain Kalman filter (Enzner and Vary 2006; Kuech, Mabande and
Enzner 2014). The way is an impulse response in partitions of one block each. The filter keeps an
estimate of every partition's spectrum, and of how wrong that is. So it learns fast while it knows
little, slowly once it knows much, and hardly at all while the user speaks: a louder error without
louder playback is the user's voice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voiceloop.types import Pcm

BLOCK = 160
"""Samples of a block: 10 ms at 16 kHz."""
TAIL_MS = 250
"""Length of the impulse response. Reflections that come later are left to the next stage."""
STABLE = 0.9999
"""Factor by which a block's impulse response predicts that of the next (A in the papers)."""
FIRST_GUESS = 3.0
"""Variance of the first partition's spectrum before anything is known."""
DECAY_DB = 3.0
"""How much less each later partition is expected to have, in dB for each 10 ms."""
SMOOTHING = 0.7
"""Share of the old estimate of the near end's power in the new one."""
TINY = 1e-8


class KalmanFilter:
    """Subtracts what it predicts of the microphone's signal from the loudspeaker's."""

    def __init__(self, tail_ms: int = TAIL_MS) -> None:
        self._partitions = tail_ms * 16 // BLOCK
        shape = (self._partitions, BLOCK + 1)
        self._played = np.zeros(shape, np.complex64)
        """Spectra of two blocks each of what was played, the newest first."""
        self._way = np.zeros(shape, np.complex64)
        fall = 10 ** (-DECAY_DB / 10 * np.arange(self._partitions, dtype=np.float32))
        self._unsure = (FIRST_GUESS * np.ones(shape, np.float32)) * fall[:, None]
        """Variance of the estimate of each bin of `_way`."""
        self._near = np.zeros(BLOCK + 1, np.float32)
        """Power spectrum of what is no echo: the user, noise, and what the filter cannot know."""
        self._last = np.zeros(BLOCK, np.float32)

    def cancel(self, recorded: Pcm, played: Pcm) -> Pcm:
        """Return a block of the microphone without its echo. `played` is the block of the
        loudspeaker that sounded at that time; the echo may come up to the tail's length later."""
        self._played = np.roll(self._played, 1, axis=0)
        self._played[0] = _spectrum(np.concatenate((self._last, played)))
        self._last = played
        echo = np.fft.irfft(np.einsum("pk,pk->k", self._played, self._way))[BLOCK:]
        error = (recorded - echo).astype(np.float32)
        self._learn(error)
        return error

    def _learn(self, error: Pcm) -> None:
        """Take the step of the Kalman filter for one block's error."""
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
