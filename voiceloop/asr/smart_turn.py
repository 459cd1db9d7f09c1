"""Runs smart-turn 3.2 of Pipecat, a turn model: it judges from the sound of the voice whether the
speaker has finished.

The model is an encoder like Whisper's. It takes the last eight seconds of a turn; silence is put
before a shorter turn. It was trained on turns that are followed by 0.2 s of silence. This module
knows no words. Source: https://github.com/pipecat-ai/smart-turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor

from voiceloop.asr.encoding import HOP, LogMel
from voiceloop.asr.silero import open_network
from voiceloop.audio.frames import SPEECH_RATE, silence
from voiceloop.catalog.names import find
from voiceloop.engines import TurnModel
from voiceloop.placement import MemoryPart
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Pcm

NAME = "smart-turn-v3.2"
FILE = "smart-turn-v3.2-cpu.onnx"
MELS = 80
TINY = 1e-7
"""Value that is added to the variance of the audio, as in training. It avoids a division by
zero."""


class SmartTurn:
    """The smart-turn model; implements `engines.TurnModel`."""

    name = NAME
    silence_ms = 240
    window_s = 8.0

    def __init__(self, session: Any) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name
        self._log_mel = LogMel(FeatureExtractor(MELS).mel_filters)

    def end_of_turn_probability(self, pcm: Pcm) -> float:
        """Return the probability that the speaker has finished at the end of `pcm` (16 kHz). Only
        the last `window_s` seconds of `pcm` count."""
        window = round(self.window_s * SPEECH_RATE)
        heard = pcm[-window:]
        whole = np.concatenate((silence(window - len(heard)), heard))
        scaled = (whole - whole.mean()) / np.sqrt(whole.var() + TINY)
        features = self._log_mel(scaled.astype(np.float32), window // HOP)
        (found,) = self._session.run(None, {self._input: features[None]})
        return float(np.ravel(found)[0])


def footprint(config: TurnConfig, device: str) -> Iterator[MemoryPart]:
    """Yield the memory that the model takes on `device`. The model runs only on the CPU."""
    del config
    if device == "cpu":
        files = find(NAME, "turn").rglob("*.onnx")
        yield MemoryPart("ear", sum(file.stat().st_size for file in files))


def smart_turn(config: TurnConfig) -> TurnModel:
    """Load the model. This is the entry point of `voiceloop.turn`.

    Raises ModelCorrupt, and the errors of `catalog.names.find`.
    """
    del config  # it sets lengths of silence, which the model does not decide
    path = find(NAME, "turn") / FILE
    hint = f"fetch it again: voiceloop models pull {NAME}"
    return SmartTurn(open_network(path, "model", hint, arena=True))
