"""Speech by Kokoro-82M on the CPU: a small model, and one of the best of its size.

The model makes the sound of a whole text at once. So a clause is one step and one chunk, unless the
clause is too long for the model. A voice is a table of style vectors, one for each possible number
of tokens in a text. This module does not know how text becomes phonemes.
"""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from voiceloop.catalog.names import FOLDERS, find, voice_model
from voiceloop.engines import Steps, Tts
from voiceloop.errors import ModelNotFound
from voiceloop.languages.voices import KOKORO_LANGUAGES
from voiceloop.placement import MemoryPart
from voiceloop.settings.config import TtsConfig
from voiceloop.status import tts_name
from voiceloop.tts.delivery import PacedWords, deliver, fitting, nothing, sayable
from voiceloop.tts.errors import readable, require
from voiceloop.tts.espeak import phonemes
from voiceloop.tts.graphs import session, voice_part
from voiceloop.types import Clause, Pcm, SpeechChunk

RATE = 24_000
PREFERRED = "af_heart"
"""The default voice, which the model's makers grade best."""
STYLE = 256
"""Length of a style vector."""
_SYMBOLS = tomllib.loads((files("voiceloop.tts") / "kokoro.toml").read_text(encoding="utf-8"))
TOKENS = {char: int(id) + i for id, chars in _SYMBOLS.items() for i, char in enumerate(chars)}
"""Token ids of the model's symbols."""
_NEAREST = str.maketrans({"r": "ɹ", "ɬ": "l", "\N{COMBINING DOUBLE INVERTED BREVE}": None})
"""IPA letters that the model does not know, mapped to the nearest letter that it knows, or to None
if they are left out."""

Style = npt.NDArray[np.float32]


class Kokoro:
    """Kokoro as an `engines.Tts`. In each step the model speaks a clause, or a part of a clause
    that is too long for the model."""

    rate = RATE
    paces = True

    def __init__(
        self, name: str, session: Any, styles: Mapping[str, Style], voice: str, speed: float
    ) -> None:
        """Use a loaded model. `styles` maps each voice to its table [lengths, 256]. An empty
        `voice` means `PREFERRED`, or the first one by name if that is missing.

        Raises ConfigError for a voice that does not exist.
        """
        self.name = name
        self._session = session
        self._tokens = session.get_inputs()[0].name
        self._styles = _with_phonemes(styles)
        self._speed = speed
        self.voice = voice or (PREFERRED if PREFERRED in self._styles else min(self._styles))
        self.check_voice(self.voice)

    def voices(self) -> Sequence[str]:
        """Return the voices whose languages are in `KOKORO_LANGUAGES`."""
        return sorted(self._styles)

    def check_voice(self, name: str) -> None:
        """Raise ConfigError for a voice that the model does not have."""
        require(name, self._styles, self.name)

    def language(self, voice: str | None = None) -> str:
        """Return the code of the language that a voice speaks."""
        return KOKORO_LANGUAGES[(self.voice if voice is None else voice)[0]]

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Speak a clause in chunks. A clause with nothing to say gives one chunk without audio."""
        chosen = self.voice if voice is None else voice
        style = self._styles[chosen]
        language = self.language(chosen)
        parts = fitting(sayable(clause), lambda text: self._ids(text, language, len(style)))
        if not parts:
            yield nothing(clause, self.rate)
            return
        speed *= self._speed
        pieces = ((self._say(ids, style, speed), ids is parts[-1]) for ids in parts)
        words = PacedWords(clause.spoken, clause.spans, self.rate, speed)
        yield from deliver(clause, pieces, words, self.rate, speed)

    def _ids(self, text: str, language: str, most: int) -> list[int] | None:
        """Return the token ids of `text`, empty if it has no letter that the model knows. None if
        there are more than `most`."""
        said = [
            symbol for symbol in phonemes(text, language).translate(_NEAREST) if symbol in TOKENS
        ]
        if len(said) > most:
            return None
        return [TOKENS[symbol] for symbol in said] if any(map(str.isalpha, said)) else []

    def _say(self, ids: list[int], style: Style, speed: float) -> Pcm:
        given = {
            self._tokens: np.array([[0, *ids, 0]], np.int64),
            "style": style[len(ids) - 1][None],
            "speed": np.array([speed], np.float32),
        }
        sound = np.ravel(self._session.run(None, given)[0]).astype(np.float32)
        return np.clip(sound, -1.0, 1.0)


def kokoro(config: TtsConfig) -> Tts:
    """Load Kokoro. This is an entry point of `voiceloop.tts`.

    `config.model` is a pulled model, or a folder with the model and its voices. Raises what
    `catalog.names.find` raises, ModelCorrupt, and ConfigError for a voice that does not exist.
    """
    file, styles = _find_model(config)
    with readable(voice_model(config)):
        graph = session(file)
    return Kokoro(tts_name(config), graph, styles, config.voice, config.speed)


def footprint(config: TtsConfig, device: str) -> Iterator[MemoryPart]:
    """Yield the memory that the voice takes on `device`, a type such as `cpu`."""
    return voice_part(find(voice_model(config), "kokoro"), device)


def check_voice(config: TtsConfig) -> None:
    """Raise the errors that `kokoro` would raise for the voice, without opening the model."""
    _, styles = _find_model(config)
    if config.voice:
        require(config.voice, _with_phonemes(styles), tts_name(config))


def _with_phonemes(styles: Mapping[str, Style]) -> Mapping[str, Style]:
    """Return the voices whose languages are in `KOKORO_LANGUAGES`."""
    return {voice: style for voice, style in styles.items() if voice[0] in KOKORO_LANGUAGES}


def _find_model(config: TtsConfig) -> tuple[Path, Mapping[str, Style]]:
    """Return the file of the model, and the tables of the voices beside it."""
    name = voice_model(config)
    folder = find(name, "kokoro")
    models = [*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")]
    if len(models) != 1:
        what = f"{len(models)} models (.onnx)" if models else "no model (.onnx)"
        raise ModelNotFound(f"there is no voice in '{name}': it holds {what}", FOLDERS["kokoro"])
    return models[0], _styles(name, folder)


def _styles(name: str, folder: Path) -> Mapping[str, Style]:
    """Read the voices in a folder: one file with all of them, or a folder `voices` with one file
    for each."""
    packed = [file for file in sorted(folder.glob("voices*")) if zipfile.is_zipfile(file)]
    with readable(name):
        if packed:
            with np.load(packed[0], allow_pickle=False) as file:
                found = {voice: file[voice] for voice in file.files}
        else:
            files = folder.glob("voices/*.bin")
            found = {file.stem: np.fromfile(file, np.float32) for file in files}
        styles = {
            voice: style.astype(np.float32).reshape(-1, STYLE) for voice, style in found.items()
        }
    if not any(voice[:1] in KOKORO_LANGUAGES for voice in styles):
        raise ModelNotFound(
            f"there is no voice in '{name}': it holds no voices (.bin)", FOLDERS["kokoro"]
        )
    return styles
