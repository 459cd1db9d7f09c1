"""Speech by the VITS voices of Coqui TTS: the first samples come before the last are computed.

A clause is encoded in one step: text encoder, durations and flow. The resulting latent is decoded
to audio in growing windows, one step each. The noise is seeded by the text, so the same clause
always sounds the same. This module knows neither how a decoder is divided into windows nor how
words are found from durations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from voiceloop.engines import Steps, Tts
from voiceloop.errors import ConfigError
from voiceloop.placement import own_stream, torch_device
from voiceloop.settings.config import TtsConfig
from voiceloop.settings.schema import suggestion
from voiceloop.tts.delivery import (
    TimedWords,
    deliver,
    groups_of,
    nothing,
    sayable,
    windows,
    word_times,
)
from voiceloop.tts.loading import DEFAULT, is_xtts, load_voice
from voiceloop.tts.vocoder import LENGTHS, ClauseNoise, Vocoder, fix_weights
from voiceloop.tts.xtts import Xtts
from voiceloop.types import Clause, Pcm, SpeechChunk, SpokenWord

SINGLE = "default"
"""Name for the voice of a model that has a single speaker without a name."""


class _Tap(torch.nn.Module):
    """A stand-in for the decoder inside the model, because the decoder runs later, in windows. It
    keeps the speaker condition and returns the latent unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.condition: Tensor | None = None

    def forward(self, latent: Tensor, g: Tensor | None = None) -> Tensor:
        self.condition = g
        return latent


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The decoder's input for a clause, and the times of its words."""

    latent: Tensor
    """Shape [1, channels, frames]."""
    condition: Tensor | None
    """Speaker condition [1, channels, 1]; None for a model with one speaker."""
    words: tuple[SpokenWord, ...]
    """Words of the clause, timed in samples of the decoder."""


class Coqui:
    """A VITS voice as an `engines.Tts`. Encoding is one step, and so is each window."""

    paces = False

    def __init__(
        self, name: str, model: Any, device: torch.device, voice: str = "", speed: float = 1.0
    ) -> None:
        """Use `model`, a `Vits`, and change it. `voice` is a speaker; empty means the first one.

        Raises ConfigError for a speaker that does not exist.
        """
        self.name = f"coqui {name}"
        self.rate = int(model.config.audio.sample_rate)
        self._device = device
        self._speakers: dict[str, int] = (
            model.speaker_manager.name_to_id if model.speaker_manager else {}
        )
        self.voice = voice or next(iter(self._speakers), SINGLE)
        self.check_voice(self.voice)
        self._language = str(model.language_manager.language_names[0])
        fix_weights(model)
        model.to(self._device)
        model.length_scale /= speed
        self._speed = speed
        self._vocoder = Vocoder(model.waveform_decoder, LENGTHS.get(device.type, ()))
        self._tap = model.waveform_decoder = _Tap()
        self._model = model

    def voices(self) -> Sequence[str]:
        """Return the model's speakers."""
        return sorted(self._speakers) or [SINGLE]

    def check_voice(self, name: str) -> None:
        """Raise ConfigError for a speaker that the model does not have."""
        known = self.voices()
        if name not in known:
            raise ConfigError(
                f"{self.name} has no speaker called '{name}'",
                suggestion(name, known)
                if self._speakers
                else "it has only one: leave out tts.voice",
            )

    def language(self, voice: str | None = None) -> str:
        """Return the code of the language, which is the same for all speakers."""
        del voice
        return self._language

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Speak a clause in chunks. A clause with nothing to say gives one chunk without audio."""
        del speed
        encoded = self._encode(clause, self.voice if voice is None else voice)
        if encoded is None:
            yield nothing(clause, self.rate)
            return
        yield None
        words = TimedWords(encoded.words)
        yield from deliver(clause, self._pieces(encoded), words, self.rate, self._speed)

    def _pieces(self, encoded: _Encoded) -> Iterator[tuple[Pcm, bool]]:
        latent = encoded.latent
        for start, end in windows(latent.shape[-1]):
            pcm = self._vocoder.decode(latent, start, end, encoded.condition)
            yield pcm, end == latent.shape[-1]

    @torch.inference_mode()
    def _encode(self, clause: Clause, voice: str) -> _Encoded | None:
        """Return the decoder's input; None if the clause has nothing that can be said."""
        text = sayable(clause)
        if not text:
            return None
        ids = self._model.tokenizer.text_to_ids(text, language=self._language)
        symbols = self._symbols(ids)
        if not groups_of(symbols):
            return None
        with ClauseNoise(text, self._device).drawing():
            given = {"speaker_ids": self._speaker_ids(voice)}
            outputs = self._model.inference(torch.tensor([ids], device=self._device), given)
        latent = outputs["model_outputs"]
        # The encoder of a voice may have a lower sample rate than its decoder.
        hop = self._vocoder.hop * outputs["y_mask"].shape[-1] / outputs["alignments"].shape[-1]
        ends = outputs["durations"].flatten().cumsum(0) * hop
        words = word_times(clause.spoken, clause.spans, symbols, ends.tolist())
        return _Encoded(latent, self._tap.condition, words)

    def _speaker_ids(self, voice: str) -> Tensor | None:
        """Return the speaker in the form that the model takes; None if it has only one speaker."""
        speaker = self._speakers.get(voice)
        return None if speaker is None else torch.tensor([speaker], device=self._device)

    def _symbols(self, ids: Sequence[int]) -> list[str]:
        """Return the character of each token; empty for blanks and for the tokens at both ends."""
        known = self._model.tokenizer.characters
        silent = {known.blank_id, known.bos_id, known.eos_id}
        return ["" if token in silent else known.id_to_char(token) for token in ids]


def coqui(config: TtsConfig) -> Tts:
    """Load a voice of Coqui TTS. This is an entry point of `voiceloop.tts`.

    `config.model` is a folder, or the name of a voice in Coqui TTS. `config.voice` is a speaker if
    the model has several. Raises what `load_voice` raises, ConfigError for a speaker that does not
    exist, and EngineError for a device that is missing.
    """
    name = config.model or DEFAULT
    # Nobody has tested whether the voices run on Apple's GPU, so `auto` does not choose it.
    device = torch_device("tts.device", config.device, auto=("cuda", "cpu"))
    own_stream(device)
    model = load_voice(name)
    build = Xtts if is_xtts(model) else Coqui
    return build(name, model, device, config.voice, config.speed)
