"""Turns audio into the states that Whisper's decoder reads, window by window.

The log-mel features are those of faster-whisper's extractor, computed many times faster. The
features of silence after the audio are filled in and not computed, so padding a short utterance to
a long window takes no time. CTranslate2 encodes each window as a whole. On a CPU that takes most of
a decode's time. So voiceloop has its own encoder for CPUs, which does less work for short audio.
This module knows no words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from voiceloop.audio.frames import SPEECH_RATE, silence
from voiceloop.errors import ModelCorrupt
from voiceloop.foreign import parsed
from voiceloop.process import all_cores
from voiceloop.types import Pcm

if TYPE_CHECKING:
    import ctranslate2
    from faster_whisper import WhisperModel

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
States = npt.NDArray[np.float32]
"""Encoder states of shape [states, width]."""
Encoder = Callable[[Features], States]
"""A function that computes the encoder states of features."""


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


FULL_WINDOW_S = 30.0
"""Length in seconds of the windows on which Whisper was trained. The encoder takes no longer
windows."""
SHORTEST_S = 0.5
"""Minimum length in seconds of a window, for a model that was trained on windows of any length."""
QUIET = -0.75
"""Typical value of the log-mel features in the silence after speech of a usual level. The exact
value depends on the speech, because features are relative to the loudest sound."""
FRAMES_PER_STEP = 20
"""Feature frames in a step of 0.2 s. Each window has a whole number of steps, so there are few
different lengths. For each length, the encoder's convolutions compile a kernel of some 0.3 MB and
keep it for good."""
REACH_S = 0.04
"""Seconds after the end of the audio in which states still depend on the audio. Each feature and
each convolution covers a stretch of time, not an instant."""
BEHIND = 2
"""Number of states of silence with which the features for a short window end. The convolved
features of the first are used at every silent position except the last one of the window. The last
position uses those of the second."""
STATE_S = FRAMES_PER_STATE * HOP / SPEECH_RATE
"""Seconds from one state of the encoder to the next."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The lengths of windows that a model's encoder takes."""

    longest_s: float = FULL_WINDOW_S
    """Longest window, in seconds."""
    any_length: bool = False
    """Whether the model was trained on windows of any length. If not, each window is filled with
    silence up to `FULL_WINDOW_S`."""

    def frames(self, seconds: float) -> int:
        """Return the length of the window for `seconds` of audio, in feature frames."""
        return whole_steps(max(seconds, SHORTEST_S) if self.any_length else FULL_WINDOW_S)


def whole_steps(seconds: float) -> int:
    """Return `seconds` in feature frames, rounded up to a multiple of `FRAMES_PER_STEP`."""
    steps = math.ceil(round(seconds * SPEECH_RATE) / HOP / FRAMES_PER_STEP)
    return steps * FRAMES_PER_STEP


def read_windows(folder: Path) -> Windows:
    """Read the `windows.json` of a model's folder. Most models have none, and get the defaults.

    Raises ModelCorrupt if the file cannot be understood.
    """
    path = folder / "windows.json"
    if not path.is_file():
        return Windows()
    try:
        return Windows(**parsed(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ModelCorrupt(f"{path} cannot be understood: {error}", "copy it again") from error


class Encoding:
    """Computes the encoder states of audio for one model."""

    def __init__(
        self,
        model: WhisperModel,
        windows: Windows,
        encoder: Encoder | None = None,
        short: Encoder | None = None,
        pad_s: float | None = None,
    ) -> None:
        """Use voiceloop's own `encoder`, or CTranslate2's if `encoder` is None. `short` encodes
        windows that are silent after their beginning; without it, full windows are computed.
        `pad_s` is the length in seconds of the silence after the audio that `short` computes in
        full. The states of later silence are approximated."""
        self.windows = windows
        self._model = model
        self._mels = len(model.feature_extractor.mel_filters)
        self._log_mel = LogMel(model.feature_extractor.mel_filters)
        self._encoder, self._short = encoder, short
        self._pad_s = max(pad_s or 0.0, REACH_S)

    def shortens(self, pcm: Pcm) -> bool:
        """Return whether only a short window is encoded for `pcm`, which gives approximate
        states."""
        return self._short is not None and self._heard(pcm) <= self.windows.frames(0)

    def _heard(self, pcm: Pcm) -> int:
        """Return how many feature frames are encoded for `pcm` in a short window."""
        seconds = len(pcm) / SPEECH_RATE
        return whole_steps(seconds + self._pad_s) + FRAMES_PER_STATE * BEHIND

    def __call__(self, pcm: Pcm, *, whole: bool = False) -> ctranslate2.StorageView:
        """Return the states of the window of `pcm` (16 kHz): [1, states, width].

        With `whole`, the full window is encoded even if a short one would do.
        """
        frames = self.windows.frames(len(pcm) / SPEECH_RATE)
        if self._encoder is None:
            # CTranslate2 tells states from features by their shape. If a window has as many states
            # as mel bands (80 bands: 1.6 s), CTranslate2 encodes the states once more, and
            # the speech is lost. One more state avoids that.
            frames += FRAMES_PER_STATE * (frames == self._mels * FRAMES_PER_STATE)
            return self._model.encode(self._log_mel(pcm, frames))
        short = self._short if self.shortens(pcm) and not whole else None
        features = self._log_mel(pcm, self._heard(pcm) if short else frames)
        with all_cores():
            states = (short or self._encoder)(features)
        import ctranslate2  # here, since the features alone do not need it

        return ctranslate2.StorageView.from_array(states[None])
