"""The two chimes of the wake word: soft notes that rise for waking and fall for falling asleep.

They are pure tones, which voice activity detection does not take for speech.
"""

from __future__ import annotations

import numpy as np

from voiceloop.audio.frames import fade_in, fade_out, samples, silence
from voiceloop.types import Pcm

OPENS_HZ, CLOSES_HZ = (660.0, 880.0), (495.0, 440.0)
"""Frequencies of the two notes in hertz: a fourth upwards, and a tone downwards."""
NOTE_MS, FADE_MS, GAP_MS = 80, 20, 10
AMPLITUDE = 0.06
"""Amplitude of the notes: a peak of -24 dBFS."""


def chime(rate: int, *, opens: bool) -> Pcm:
    """Return the sound for waking, or for falling asleep, at `rate` hertz."""
    first, second = (_note(hertz, rate) for hertz in (OPENS_HZ if opens else CLOSES_HZ))
    return np.concatenate((first, silence(samples(GAP_MS, rate)), second))


def _note(hertz: float, rate: int) -> Pcm:
    time = np.arange(samples(NOTE_MS, rate)) / rate
    note = (AMPLITUDE * np.sin(2 * np.pi * hertz * time)).astype(np.float32)
    fade = samples(FADE_MS, rate)
    return fade_out(fade_in(note, fade), fade)
