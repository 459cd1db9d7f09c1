"""The noise of a quiet room, and the levels of sounds. All sounds are mono at 16 kHz."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.types import Pcm

Rng = np.random.Generator
Wave = npt.NDArray[np.float64]

ROOM_DBFS = -66.0
"""RMS level of the noise of a quiet room, in dB relative to full scale. The loudest samples of this
noise are some 4 dB below `playback.AUDIBLE`."""


def rms(pcm: npt.ArrayLike) -> float:
    """Return the root mean square of the samples `pcm`; 0 for no samples."""
    wave = np.asarray(pcm, np.float64)
    return float(np.sqrt(np.mean(wave * wave))) if wave.size else 0.0


def at_level(sound: npt.ArrayLike, dbfs: float) -> Pcm:
    """Scale `sound` to an RMS level of `dbfs`, in dB relative to full scale. At least one sample of
    `sound` must not be 0."""
    return (np.asarray(sound, np.float64) * (10 ** (dbfs / 20) / rms(sound))).astype(np.float32)


def noise(rng: Rng, count: int, gain: Callable[[Wave], Wave]) -> Wave:
    """Draw `count` samples of noise that can be repeated without an audible seam.

    The spectrum of white noise is multiplied by `gain`, a function of the frequencies in hertz.
    """
    spectrum = np.fft.rfft(rng.standard_normal(count))
    hz = np.fft.rfftfreq(count, 1 / SPEECH_RATE).astype(np.float64)
    return np.fft.irfft(spectrum * gain(hz), count)


def room(rng: Rng, count: int, dbfs: float = ROOM_DBFS) -> Pcm:
    """Draw `count` samples of the noise of a quiet room, at an RMS level of `dbfs`. Above 100 Hz
    the spectrum falls by 3 dB per octave."""
    return at_level(noise(rng, count, lambda hz: (1 + hz / 100) ** -0.5), dbfs)
