"""Noise of a quiet room, and levels of sounds; all is float32 at 16 kHz."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.types import Pcm

Rng = np.random.Generator
Wave = npt.NDArray[np.float64]

ROOM_DBFS = -66.0
"""RMS level of a quiet room, in dB relative to full scale. Its loudest samples are some 4 dB below
the audible level."""


def rms(pcm: npt.ArrayLike) -> float:
    """Return the root mean square; 0 for no samples."""
    wave = np.asarray(pcm, np.float64)
    return float(np.sqrt(np.mean(wave * wave))) if wave.size else 0.0


def at_level(sound: npt.ArrayLike, dbfs: float) -> Pcm:
    """Scale `sound` to an RMS level of `dbfs`, in dB relative to full scale. It must not be all
    zeros."""
    return (np.asarray(sound, np.float64) * (10 ** (dbfs / 20) / rms(sound))).astype(np.float32)


def noise(rng: Rng, count: int, gain: Callable[[Wave], Wave]) -> Wave:
    """Draw `count` samples of noise, which can be repeated without a seam.

    It is white noise, multiplied at each frequency by the `gain` there; `gain` takes hertz.
    """
    spectrum = np.fft.rfft(rng.standard_normal(count))
    hz = np.fft.rfftfreq(count, 1 / SPEECH_RATE).astype(np.float64)
    return np.fft.irfft(spectrum * gain(hz), count)


def room(rng: Rng, count: int, dbfs: float = ROOM_DBFS) -> Pcm:
    """Draw the noise of a quiet room: it falls by 3 dB an octave above 100 Hz."""
    return at_level(noise(rng, count, lambda hz: (1 + hz / 100) ** -0.5), dbfs)
