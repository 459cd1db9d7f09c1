"""The clips of the bench: the sound of one turn, with its words and the place of the speech.

All sounds are mono at 16 kHz. Positions are indices of samples, from the beginning of the clip. An
end is the index after the last sample. A sample belongs to speech if it is audible
(`playback.AUDIBLE`) before any noise is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.audio.playback import AUDIBLE
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


@dataclass(frozen=True, slots=True)
class ClipSpeech:
    """The words of a clip, and where they are spoken. Values that are not known are None."""

    text: str | None = None
    start: int | None = None
    """Index of the first audible sample."""
    end: int | None = None
    """Index of the sample after the last audible one: the true end of speech."""


@dataclass(frozen=True, slots=True)
class Clip:
    """The sound of one turn at the microphone: some silence, then speech, and at last only noise
    without end."""

    name: str
    pcm: Pcm
    background: Pcm
    """Noise that is repeated without end. `pcm` contains it already, and after `pcm` it goes on."""
    said: ClipSpeech

    def read(self, start: int, count: int) -> Pcm:
        """Return `count` samples from `start` on. After the end of `pcm` there is only noise."""
        at = np.arange(start, start + count)
        heard = self.background[at % len(self.background)]
        inside = at < len(self.pcm)
        heard[inside] = self.pcm[at[inside]]
        return heard


def audible(pcm: Pcm) -> tuple[int, int]:
    """Return the index of the first audible sample of `pcm`, and the index after the last one. At
    least one sample must be audible."""
    loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
    return int(loud[0]), int(loud[-1]) + 1
