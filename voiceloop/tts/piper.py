"""Speech by Piper's voices in onnxruntime: the first samples come before the last are computed.

A clause is encoded in one step. Its latent is decoded in growing windows, one step each. All pulled
voices with the same sample rate can be chosen, and each is loaded when it first speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from voiceloop.catalog.names import find, voice_model
from voiceloop.catalog.store import ModelStore
from voiceloop.config import TtsConfig
from voiceloop.engines import Steps, Tts
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound
from voiceloop.memoryplan import MemoryPart
from voiceloop.schema import suggestion
from voiceloop.tts.delivery import TimedWords, deliver, nothing, sayable
from voiceloop.tts.graphs import Opener, voice_part
from voiceloop.tts.piper_voice import Description, PiperVoice, describe
from voiceloop.types import Clause, SpeechChunk


class Piper:
    """Piper's voices as an `engines.Tts`. Encoding is one step, and so is each window."""

    paces = True

    def __init__(
        self,
        own: Description,
        others: Sequence[Description],
        voice: str,
        speed: float,
        opened: Callable[[Path], Any],
    ) -> None:
        """Load the model `own`. `voice` is a voice, or a speaker in `own`; empty means the first
        voice of `own`.

        The voices of `others` can be chosen too, if they have the same sample rate as `own`.
        `opened` opens a graph of a model. Raises ConfigError for a voice that does not exist, and
        ModelCorrupt.
        """
        self.name = f"piper {own.name}"
        self.rate = own.rate
        self._own = own
        self._speed = speed
        self._opened = opened
        self._models = _by_voice(own, others)
        self.voice = _named(own, voice)
        self.check_voice(self.voice)
        self._loaded: dict[str, PiperVoice] = {own.name: PiperVoice(own, opened)}

    def voices(self) -> Sequence[str]:
        """Return the names of all voices. A voice is a model with one speaker (`en_US-joe-medium`),
        or one speaker of a model (`model/speaker`)."""
        return sorted(self._models)

    def check_voice(self, name: str) -> None:
        """Raise ConfigError for a voice that no model at hand has."""
        _check(name, self._own, self._models)

    def language(self, voice: str | None = None) -> str:
        """Return the code of the language that a voice speaks."""
        return self._models[self.voice if voice is None else voice].language

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Speak a clause in chunks. A clause with nothing to say gives one chunk without audio.
        Raises ModelCorrupt."""
        chosen = self.voice if voice is None else voice
        model = self._models[chosen]
        speaker = chosen.removeprefix(model.name).removeprefix("/")
        if model.name not in self._loaded:
            self._loaded[model.name] = PiperVoice(model, self._opened)
            yield None
        spoken, text = self._loaded[model.name], sayable(clause)
        encoded = spoken.encode(clause, text, speaker, self._speed * speed) if text else None
        if encoded is None:
            yield nothing(clause, self.rate)
            return
        yield None
        pieces = spoken.decode(encoded, speaker)
        words = TimedWords(encoded.words)
        yield from deliver(clause, pieces, words, self.rate, self._speed * speed)


def piper(config: TtsConfig) -> Tts:
    """Load a Piper voice. This is an entry point of `voiceloop.tts`.

    `config.model` is a pulled voice, a folder or an .onnx file. Raises what `catalog.names.find`
    raises, ModelCorrupt, ConfigError for a voice that does not exist, and EngineError for a device
    that cannot be used.
    """
    return Piper(*_find_models(config), config.voice, config.speed, Opener(config.device))


def footprint(config: TtsConfig, device: str) -> Iterator[MemoryPart]:
    """Yield the memory that the voice takes on `device`, a type such as `cpu`."""
    return voice_part(find(voice_model(config), "piper"), device)


def check_voice(config: TtsConfig) -> None:
    """Raise the errors that `piper` would raise for the voice, without opening its graphs."""
    own, others = _find_models(config)
    _check(_named(own, config.voice), own, _by_voice(own, others))


def _check(voice: str, own: Description, models: Mapping[str, Description]) -> None:
    if voice not in models:
        hint = suggestion(voice, [*models, *own.speakers])
        raise ConfigError(f"piper {own.name} has no voice called '{voice}'", hint)


def _named(own: Description, voice: str) -> str:
    """Return the full name of `voice`: `model/speaker` for a speaker in `own`, the first voice of
    `own` if `voice` is empty or the model's name, else `voice` itself."""
    if voice in own.speakers:
        return f"{own.name}/{voice}"
    return own.voices[0] if voice in ("", own.name) else voice


def _by_voice(own: Description, others: Sequence[Description]) -> Mapping[str, Description]:
    """Map each voice to its model, for all models with the sample rate of `own`."""
    models = [own, *(one for one in others if one.rate == own.rate)]
    return {voice: model for model in models[::-1] for voice in model.voices}


def _find_models(config: TtsConfig) -> tuple[Description, list[Description]]:
    """Return the configured model, and the others that have been pulled."""
    name = voice_model(config)
    store = ModelStore()
    own = describe(find(name, "piper", store), Path(name).name.removesuffix(".onnx"))
    others = list[Description]()
    for model in store.models():
        if model.origin != "file" and model.name != own.name and store.find(model.name):
            # Errors of another model are reported when that model is configured.
            with suppress(ModelNotFound, ModelCorrupt, ConfigError):
                others.append(describe(model.folder, model.name))
    return own, others
