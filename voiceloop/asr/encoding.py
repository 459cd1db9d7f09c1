"""Turns audio into the states that Whisper's decoder reads, window by window.

CTranslate2 encodes each window as a whole. On a CPU that takes most of a decode's time. So
voiceloop has its own encoder for CPUs, which does less work for short audio. This module knows no
words.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import ctranslate2
import numpy as np

from voiceloop.asr.features import FRAMES_PER_STATE, HOP, LogMel
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.errors import ModelCorrupt
from voiceloop.foreign import parsed
from voiceloop.process import all_cores
from voiceloop.types import Pcm

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

    from voiceloop.asr.short_window import ShortEncoder
    from voiceloop.asr.whisper_encoder import WhisperEncoder

logger = logging.getLogger(__name__)

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
STATE_S = FRAMES_PER_STATE * HOP / SPEECH_RATE
"""Seconds from one state of the encoder to the next."""
SAME = 0.5
"""If the states of voiceloop's encoder and of CTranslate2's differ by more than this, the two are
not the same network. The difference is the root mean square, divided by the standard deviation of
CTranslate2's states. Two different networks give 1.4. With weights of 8 bits, tiny.en, base and the
starter model give 0.02 to 0.07; larger models have not been tried."""


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
        encoder: WhisperEncoder | None,
        pad_s: float | None,
    ) -> None:
        """Use voiceloop's own `encoder`, or CTranslate2's if `encoder` is None. `pad_s` is the
        length in seconds of the silence after the audio that `encoder` computes in full. The states
        of later silence are approximated. None means that the full window is computed."""
        self.windows = windows
        self._model = model
        self._mels = len(model.feature_extractor.mel_filters)
        self._log_mel = LogMel(model.feature_extractor.mel_filters)
        self._encoder = encoder
        self._pad_s = max(pad_s or 0.0, REACH_S)
        self._short: ShortEncoder | None = None
        if encoder and pad_s is not None:
            from voiceloop.asr.short_window import ShortEncoder  # imports torch

            self._short = ShortEncoder(encoder, QUIET)

    def shortens(self, pcm: Pcm) -> bool:
        """Return whether only a short window is encoded for `pcm`, which gives approximate
        states."""
        return self._short is not None and self._heard(pcm, self._short) <= self.windows.frames(0)

    def _heard(self, pcm: Pcm, short: ShortEncoder) -> int:
        """Return how many feature frames `short` encodes for `pcm`."""
        seconds = len(pcm) / SPEECH_RATE
        return whole_steps(seconds + self._pad_s) + FRAMES_PER_STATE * short.BEHIND

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
        features = self._log_mel(pcm, self._heard(pcm, short) if short else frames)
        with all_cores():
            states = (short or self._encoder)(features)
        return ctranslate2.StorageView.from_array(states[None])


def is_ours(device: str, windows: Windows) -> bool:
    """Return whether voiceloop's own encoder is used on `device`. A GPU does not need it: there a
    full window takes some milliseconds. A model for windows of any length does not need it: its
    windows hold no silence."""
    return device == "cpu" and not windows.any_length


def own_encoder(folder: Path, model: WhisperModel) -> WhisperEncoder | None:
    """Make voiceloop's own encoder from the weights in `folder`. Logs a warning and returns None if
    the weights cannot be read, or if the states differ from those of `model`."""
    from voiceloop.asr.whisper_encoder import (
        read_encoder,  # imports torch, which models for windows of any length do not need
    )

    try:
        encoder = read_encoder(folder / "model.bin")
        noise = np.random.default_rng(0).normal(0, 0.5, (encoder.mels, 2 * FRAMES_PER_STEP))
        features = noise.astype(np.float32)
        ours, theirs = encoder(features), np.asarray(model.encode(features))[0]
        apart = float(np.sqrt(np.mean((ours - theirs) ** 2)) / theirs.std())
        if not apart <= SAME:
            raise ValueError(f"its encoder is none of Whisper's (states are {apart:.2f} off)")
        if FRAMES_PER_STATE * encoder.states != whole_steps(FULL_WINDOW_S):
            raise ValueError(f"its window has {encoder.states} states")
    except (OSError, ValueError, RuntimeError) as error:
        logger.warning("windows are encoded in full, which takes long: %s", error)
        return None
    return encoder
