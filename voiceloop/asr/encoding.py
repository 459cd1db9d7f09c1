"""From audio to the states that Whisper's decoder reads, by way of windows and their features.

CTranslate2 encodes each window as a whole. On a CPU that takes most of a decode's time, so our own
encoder does it there, with less work for short windows. This module knows no words.
"""

from __future__ import annotations

import json
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
from voiceloop.threads import all_cores
from voiceloop.types import Pcm

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

    from voiceloop.asr.short_window import ShortEncoder
    from voiceloop.asr.whisper_encoder import WhisperEncoder

logger = logging.getLogger(__name__)

FULL_WINDOW_S = 30.0
"""Length of the windows that Whisper was trained on, and the longest that its encoder takes."""
SHORTEST_S = 0.5
"""Shortest window that a model trained on windows of any length is given."""
QUIET = -0.75
"""Value of the features of silence after speech at a usual level: features are relative to the
loudest sound."""
FRAMES_PER_STEP = 20
"""Windows are encoded in lengths of whole steps of 0.2 s: the encoder's convolutions compile, and
keep for good, a kernel of some 0.3 MB for each length they have met."""
REACH_S = 0.04
"""Seconds after the last sample within which a state depends on it: features and convolutions look
around."""
STATE_S = FRAMES_PER_STATE * HOP / SPEECH_RATE
"""Time from one state of the encoder to the next."""
SAME = 0.5
"""Greatest root mean square difference of our states from CTranslate2's, relative to the standard
deviation of these, at which both are of one network. Those of two networks are 1.4 apart. With
weights of eight bits tiny.en, base and the starter give 0.02 to 0.07; larger models have not been
tried."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The lengths of windows that a model's encoder takes."""

    longest_s: float = FULL_WINDOW_S
    """Longest window, in seconds."""
    any_length: bool = False
    """The model was trained on windows as long as the speech in them, without silence after it."""

    def frames(self, seconds: float) -> int:
        """Return the length in feature frames of the window for `seconds` of audio."""
        return whole_steps(max(seconds, SHORTEST_S) if self.any_length else FULL_WINDOW_S)


def whole_steps(seconds: float) -> int:
    """Return a length in feature frames, rounded up to whole steps."""
    steps = math.ceil(round(seconds * SPEECH_RATE) / HOP / FRAMES_PER_STEP)
    return steps * FRAMES_PER_STEP


def read_windows(folder: Path) -> Windows:
    """Read the `windows.json` of a model's folder, which most models do not have.

    Raises ModelCorrupt for a file that cannot be understood.
    """
    path = folder / "windows.json"
    if not path.is_file():
        return Windows()
    try:
        return Windows(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ModelCorrupt(f"{path} cannot be understood: {error}", "copy it again") from error


class Encoding:
    """The encoder of one model, from audio to states."""

    def __init__(
        self,
        model: WhisperModel,
        windows: Windows,
        encoder: WhisperEncoder | None,
        pad_s: float | None,
    ) -> None:
        """Take our own `encoder`, or None for CTranslate2's. `pad_s` seconds of the silence are
        encoded with the speech; None encodes all of it."""
        self.windows = windows
        self._model = model
        self._mels = len(model.feature_extractor.mel_filters)
        self._log_mel = LogMel(model.feature_extractor.mel_filters)
        self._encoder = encoder
        self._pad_s = max(pad_s or 0.0, REACH_S)
        self._short: ShortEncoder | None = None
        if encoder and pad_s is not None:
            from voiceloop.asr.short_window import ShortEncoder  # with torch

            self._short = ShortEncoder(encoder, QUIET)

    def shortens(self, pcm: Pcm) -> bool:
        """Whether the states of `pcm` are approximated by those of a short window."""
        return self._short is not None and self._heard(pcm, self._short) <= self.windows.frames(0)

    def _heard(self, pcm: Pcm, short: ShortEncoder) -> int:
        """Return how many feature frames of a short window are encoded."""
        seconds = len(pcm) / SPEECH_RATE
        return whole_steps(seconds + self._pad_s) + FRAMES_PER_STATE * short.BEHIND

    def __call__(self, pcm: Pcm, *, whole: bool = False) -> ctranslate2.StorageView:
        """Return the states of the window of `pcm` (16 kHz): [1, states, width].

        With `whole` the full window is encoded, though a short one would do.
        """
        frames = self.windows.frames(len(pcm) / SPEECH_RATE)
        if self._encoder is None:
            # CTranslate2 would take as many states as there are mel bands for features, and encode
            # them once more: whatever is said in just 1.6 s would be lost.
            frames += FRAMES_PER_STATE * (frames == self._mels * FRAMES_PER_STATE)
            return self._model.encode(self._log_mel(pcm, frames))
        short = self._short if self.shortens(pcm) and not whole else None
        features = self._log_mel(pcm, self._heard(pcm, short) if short else frames)
        with all_cores():
            states = (short or self._encoder)(features)
        return ctranslate2.StorageView.from_array(states[None])


def is_ours(device: str, windows: Windows) -> bool:
    """Whether our own encoder is used on a device. A GPU encodes a full window in some
    milliseconds, and windows of any length need no silence."""
    return device == "cpu" and not windows.any_length


def own_encoder(folder: Path, model: WhisperModel) -> WhisperEncoder | None:
    """Read our own encoder of `model`; None, and a warning, where its states are others than the
    model's."""
    from voiceloop.asr.whisper_encoder import (
        read_encoder,  # with torch, which models of any length spare
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
