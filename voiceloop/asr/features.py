"""Computes the log-mel features that faster-whisper's extractor gives Whisper, many times faster.

The features of silence after the audio are filled in and not computed, so padding a short utterance
to a long window takes no time. This module knows nothing of models.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voiceloop.audio.frames import silence
from voiceloop.types import Pcm

HOP = 160
"""Samples from one frame to the next: 10 ms."""
WIDTH = 400
"""Samples that one frame covers: 25 ms."""
RANGE = 8.0
"""Range of log10(power). Its top is the highest value in the audio. Values below its bottom are
raised to the bottom."""
FLOOR = -10.0
"""Minimum of log10(power)."""
BLOCK = 32
"""Frames transformed at a time, few enough to fit into the processor's cache."""

FRAMES_PER_STATE = 2
"""Frames for each state of Whisper's encoder: its second convolution has a stride of two."""

Features = npt.NDArray[np.float32]
"""Features of shape [mels, frames]."""


class LogMel:
    """Computes log-mel features with a filter bank of shape [mels, 201]: mel bands by
    frequencies."""

    def __init__(self, filters: npt.NDArray[np.float32]) -> None:
        self._filters = filters
        self._window = np.hanning(WIDTH + 1)[:-1].astype(np.float32)

    def __call__(self, pcm: Pcm, frames: int) -> Features:
        """Return `frames` frames of features for `pcm` (16 kHz) and the silence after it."""
        # Each frame is centred on its sample, so the first one needs samples before the audio: the
        # mirrored beginning of the audio.
        half = WIDTH // 2
        heard = np.concatenate((pcm, silence(max(0, half + 1 - len(pcm)))))
        padded = np.concatenate((heard[half:0:-1], heard, silence(WIDTH)))
        audible = min(frames + 1, -(-(len(pcm) + half) // HOP))
        pieces = np.lib.stride_tricks.sliding_window_view(padded, WIDTH)[::HOP][:audible]
        power = np.empty((audible, WIDTH // 2 + 1), np.float32)
        for at in range(0, audible, BLOCK):
            spectrum = np.fft.rfft(pieces[at : at + BLOCK] * self._window)
            power[at : at + BLOCK] = spectrum.real**2 + spectrum.imag**2
        log = np.log10(np.maximum(self._filters @ power.T, np.float32(10.0**FLOOR)))
        least = max(FLOOR, float(log.max(initial=FLOOR)) - RANGE)
        features = np.full((len(self._filters), frames), least, np.float32)
        features[:, :audible] = np.maximum(log, least)[:, :frames]
        return (features + np.float32(4)) / np.float32(4)
