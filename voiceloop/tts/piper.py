"""Speech by Piper's voices in onnxruntime: the first samples come before the last are computed.

A voice turns text to phonemes, phonemes to a latent, and the latent to samples. It consists of two
graphs, which `catalog.piper` makes from the published graph. A clause is encoded in one step. Its
latent is decoded in growing windows, one step each. The noise for the graphs is drawn here, seeded
by the text, so the same text always sounds the same. All pulled voices with the same sample rate
can be chosen, and each is loaded when it first speaks.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from voiceloop.catalog.names import find, voice_model
from voiceloop.catalog.piper import FIRST_HALF, VOCODER, VOICE
from voiceloop.catalog.store import ModelStore
from voiceloop.engines import Steps, Tts
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound
from voiceloop.foreign import parsed
from voiceloop.placement import MemoryPart
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
from voiceloop.tts.errors import readable
from voiceloop.tts.espeak import espeak_ng, phonemes
from voiceloop.tts.graphs import Opener, session, voice_part
from voiceloop.types import Clause, Pcm, SpeechChunk, SpokenWord

BEGIN, END, PAD = "^", "$", "_"
"""Symbols that stand at the beginning of a text, at its end, and between its other symbols."""
NOISE_FRAMES = 1024
"""Frames of noise that are drawn once for a voice. Each clause reads them as a ring buffer, and the
text of the clause decides where the reading begins."""


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a voice, from the JSON file beside it."""

    name: str
    folder: Path
    rate: int
    language: str
    """Name of the espeak-ng voice (`en-us`), or the language code if the voice reads letters."""
    phonemes: bool
    """True if the voice reads phonemes, False if it reads letters."""
    ids: Mapping[str, Sequence[int]]
    """Token ids of each symbol."""
    noise: float
    pace: float
    text_noise: float
    speakers: Mapping[str, int]
    """Ids of the speakers by name; empty if there is only one."""

    @property
    def voices(self) -> list[str]:
        """The name of the only voice, or `name/speaker` for each speaker."""
        return [f"{self.name}/{speaker}" for speaker in self.speakers] or [self.name]


def describe(folder: Path, name: str) -> Description:
    """Read the description of a voice. Raises ModelNotFound and ModelCorrupt."""
    if not all((folder / file).is_file() for file in (FIRST_HALF, VOCODER, VOICE)):
        raise ModelNotFound(
            f"there is no voice of Piper in {folder}",
            "name a voice's .onnx file, with its .onnx.json beside it",
        )
    with readable(name):
        said: Any = parsed((folder / VOICE).read_text(encoding="utf-8"))
        phonemes = said.get("phoneme_type", "espeak") == "espeak"
        code = str(said.get("language", {}).get("code", "")).replace("_", "-").lower()
        speakers = said.get("speaker_id_map") or {}
        if not speakers and said.get("num_speakers", 1) > 1:
            speakers = {str(number): number for number in range(said["num_speakers"])}
        inference = said.get("inference", {})
        described = Description(
            name,
            folder,
            int(said["audio"]["sample_rate"]),
            str(said["espeak"]["voice"]) if phonemes else code,
            phonemes,
            {symbol: [int(one) for one in ids] for symbol, ids in said["phoneme_id_map"].items()},
            float(inference.get("noise_scale", 0.667)),
            float(inference.get("length_scale", 1.0)),
            float(inference.get("noise_w", 0.8)),
            {str(speaker): int(number) for speaker, number in speakers.items()},
        )
        if not {BEGIN, END, PAD} <= described.ids.keys():
            raise ValueError("it has no symbols for the ends of a text")
    if phonemes:
        espeak_ng().identifier(described.language)
    return described


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vocoder's input for a clause, and the times of its words."""

    latent: np.ndarray[Any, np.dtype[np.float32]]
    """Shape [1, channels, frames]."""
    words: tuple[SpokenWord, ...]
    """Words of the clause, timed in samples of the vocoder."""


class PiperVoice:
    """A loaded voice, for one thread at a time."""

    def __init__(self, described: Description, opened: Callable[[Path], Any] = session) -> None:
        """Load the voice; `opened` opens a graph. Raises ModelCorrupt, and what `opened` raises."""
        self.described = described
        with readable(described.name):
            self._encoder = opened(described.folder / FIRST_HALF)
            self._vocoder = opened(described.folder / VOCODER)
            noted = self._vocoder.get_modelmeta().custom_metadata_map
            self._before, self._after = int(noted["before"]), int(noted["after"])
            self.hop = int(noted["hop"])
            """Samples per frame."""
            channels = int(self._vocoder.get_inputs()[0].shape[1])
        draw = np.random.default_rng(0)
        self._noise = draw.standard_normal((1, channels, NOISE_FRAMES), np.float32)

    def encode(self, clause: Clause, text: str, speaker: str, speed: float) -> Encoded | None:
        """Return the vocoder's input for `text`, the result of `sayable`. None if nothing can be
        said.

        Raises ModelCorrupt.
        """
        ids, symbols = self._read(text)
        if not groups_of(symbols):
            return None
        said = self.described
        seed = zlib.crc32(text.encode())
        inputs = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([said.noise, said.pace / speed, said.text_noise], np.float32),
            "text_noise": np.random.default_rng(seed).standard_normal((1, 2, len(ids)), np.float32),
            "noise": np.roll(self._noise, seed % NOISE_FRAMES, axis=2),
            **self._speaker(speaker),
        }
        with readable(said.name):
            latent, durations = cast(
                "Sequence[np.ndarray[Any, np.dtype[np.float32]]]",
                self._encoder.run(["latent", "durations"], inputs),
            )
        ends = np.cumsum(durations.ravel()) * self.hop
        return Encoded(latent, word_times(clause.spoken, clause.spans, symbols, ends.tolist()))

    def decode(self, encoded: Encoded, speaker: str) -> Iterator[tuple[Pcm, bool]]:
        """Yield the samples in growing windows, each with a flag that marks the last one.

        Raises ModelCorrupt.
        """
        frames = encoded.latent.shape[-1]
        for start, end in windows(frames):
            begin = max(0, start - self._before)
            latent = encoded.latent[:, :, begin : end + self._after]
            with readable(self.described.name):
                (pcm,) = self._vocoder.run(None, {"latent": latent, **self._speaker(speaker)})
            sound = np.ravel(cast(Pcm, pcm))
            piece = sound[(start - begin) * self.hop : (end - begin) * self.hop]
            yield np.clip(piece, -1.0, 1.0), end == frames

    def _speaker(self, name: str) -> dict[str, np.ndarray[Any, Any]]:
        speakers = self.described.speakers
        return {"sid": np.array([speakers[name]], np.int64)} if speakers else {}

    def _read(self, text: str) -> tuple[list[int], list[str]]:
        """Return the token ids of `text`, and the character of each id. The character of a silent
        id is empty."""
        known = self.described.ids
        ids, symbols = [*known[BEGIN]], [""] * len(known[BEGIN])
        for symbol in ("", *self._symbols(text)):
            of_symbol, pad = known.get(symbol, []), known[PAD]
            if of_symbol or not symbol:
                ids += [*of_symbol, *pad]
                symbols += [symbol] * len(of_symbol) + [""] * len(pad)
        return [*ids, *known[END]], [*symbols, *[""] * len(known[END])]

    def _symbols(self, text: str) -> str:
        """Return the voice's input for `text`: phonemes with the marks between them, or letters."""
        if not self.described.phonemes:
            return unicodedata.normalize("NFD", text.lower())
        return unicodedata.normalize("NFD", phonemes(text, self.described.language))


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
        _require(name, self._own, self._models)

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
    _require(_named(own, config.voice), own, _by_voice(own, others))


def _require(voice: str, own: Description, models: Mapping[str, Description]) -> None:
    if voice not in models:
        hint = suggestion(_named(own, voice), [*models, *own.speakers])
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
