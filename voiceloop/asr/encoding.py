"""From audio to what Whisper's decoder reads: windows, their features, and their states.

CTranslate2 encodes each window as a whole. On a CPU that takes most of a decode's time, so there
our own encoder does it, which has less to do for short ones. This module knows no words.
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

    from voiceloop.asr.encoder import Encoder
    from voiceloop.asr.silence import ShortEncoder

logger = logging.getLogger(__name__)

FULL_WINDOW_S = 30.0
"""What Whisper was trained on, and the most that its encoder takes."""
SHORTEST_S = 0.5
"""Shortest window that a model trained on windows of any length is given."""
QUIET = -0.75
"""Features of the silence behind speech: they are relative to the loudest sound, and this is what
they are for speech at a usual level."""
FRAMES_PER_STEP = 20
"""Windows are encoded in lengths of whole steps of 0.2 s: the encoder's convolutions compile, and
keep for good, a kernel of some 0.3 MB for each length they have met."""
REACH_S = 0.04
"""So far behind the last sample a state may hear of it: features and convolutions look ahead."""
STATE_S = FRAMES_PER_STATE * HOP / SPEECH_RATE
"""Time from one state of the encoder to the next."""
SAME = 0.5
"""How far, relative to their deviation, our states may be from CTranslate2's for these to be of the
same network; those of two networks are 1.4 apart. With weights of eight bits tiny.en, base and the
starter give 0.02 to 0.07; larger models have not been tried."""


@dataclass(frozen=True, slots=True)
class Windows:
    """How long the windows are that a model's encoder is given."""

    longest_s: float = FULL_WINDOW_S
    """More than that is never decoded at once."""
    any_length: bool = False
    """The model was trained on windows as long as what is said in them: it wants no silence, and
    nothing is gained by more."""

    def frames(self, seconds: float) -> int:
        """Feature frames of the window for `seconds` of audio."""
        return whole_steps(max(seconds, SHORTEST_S) if self.any_length else FULL_WINDOW_S)


def whole_steps(seconds: float) -> int:
    """Feature frames of so much, in whole steps."""
    steps = math.ceil(round(seconds * SPEECH_RATE) / HOP / FRAMES_PER_STEP)
    return steps * FRAMES_PER_STEP


def read_windows(folder: Path) -> Windows:
    """What the model in `folder` says of its windows in `windows.json`; most say nothing.

    Raises ModelCorrupt for a file that says something else.
    """
    path = folder / "windows.json"
    if not path.is_file():
        return Windows()
    try:
        return Windows(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ModelCorrupt(f"{path} cannot be understood: {error}", "copy it again") from error


class Encoding:
    """The states of windows, of one model."""

    def __init__(
        self, model: WhisperModel, windows: Windows, encoder: Encoder | None, pad_s: float | None
    ) -> None:
        """By `encoder`, where there is one, with `pad_s` of the silence in full, or None: all."""
        self.windows = windows
        self._model = model
        self._mels = len(model.feature_extractor.mel_filters)
        self._log_mel = LogMel(model.feature_extractor.mel_filters)
        self._encoder = encoder
        self._pad_s = max(pad_s or 0.0, REACH_S)
        self._short: ShortEncoder | None = None
        if encoder and pad_s is not None:
            from voiceloop.asr.silence import ShortEncoder  # with torch

            self._short = ShortEncoder(encoder, QUIET)

    def shortens(self, pcm: Pcm) -> bool:
        """Whether the states of `pcm` are those of a full window but for an error."""
        return self._short is not None and self._heard(pcm, self._short) <= self.windows.frames(0)

    def _heard(self, pcm: Pcm, short: ShortEncoder) -> int:
        """Frames that are encoded of a short window."""
        seconds = len(pcm) / SPEECH_RATE
        return whole_steps(seconds + self._pad_s) + FRAMES_PER_STATE * short.BEHIND

    def __call__(self, pcm: Pcm, *, whole: bool = False) -> ctranslate2.StorageView:
        """States of the window of `pcm` (16 kHz): [1, states, width].

        The `whole` window is encoded, or as much of it as has to be.
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
    """Whether our own encoder is for a model with such windows there. A GPU encodes the full window
    in some milliseconds."""
    return device == "cpu" and not windows.any_length


def own_encoder(folder: Path, model: WhisperModel) -> Encoder | None:
    """Our own encoder of `model`; None, and a warning, where it is not the same as the model's."""
    from voiceloop.asr.encoder import read_encoder  # with torch, which models of any length spare

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
