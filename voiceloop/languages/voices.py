"""Describes voices for people, from the names of the voices.

Names of Kokoro's and Piper's voices contain language and region, and Kokoro's also the sex of the
speaker. For Piper's voices the sex is in `voices.toml`, as far as it is known.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

KOKORO_LANGUAGES = {
    "a": "en-us",
    "b": "en-gb",
    "e": "es",
    "f": "fr-fr",
    "h": "hi",
    "i": "it",
    "p": "pt-br",
}
"""The espeak-ng codes of the languages of Kokoro's voices, by the first letter of a voice's name.

Japanese and Chinese are missing: their voices were trained with other phonemes than espeak-ng's.
"""
_KOKORO_NAME = re.compile(r"([a-z])([fm])_(\w+)", re.ASCII)
_PIPER_NAME = re.compile(
    r"([a-z]{2,3})_([A-Z]{2,3})-(\w+)-(x_low|low|medium|high)(?:/(.+))?", re.ASCII
)


@cache
def _names() -> Mapping[str, Mapping[str, str]]:
    file = files("voiceloop.languages") / "voices.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """A description of a voice for people."""

    name: str
    """The voice's name in settings."""
    label: str
    """A description such as `Heart, American woman`, or the name if nothing is known."""
    language: str
    """Code of the voice's language, such as `en-us`; empty if unknown."""

    @property
    def language_name(self) -> str:
        """Return the name of the language without the region: `English`; empty if unknown."""
        return _names()["languages"].get(self.language.partition("-")[0], "")


@dataclass(frozen=True, slots=True)
class PiperName:
    """The parts of the name of a Piper voice: `en_US-joe-medium`."""

    language: str
    region: str
    speaker: str
    quality: str
    within: str
    """The speaker after a slash, in a model with several speakers; else empty."""


def piper_name(name: str) -> PiperName | None:
    """Return the parts of `name`; None if it is no name of a Piper voice."""
    parts = _PIPER_NAME.fullmatch(name)
    return PiperName(*(part or "" for part in parts.groups())) if parts else None


def described(name: str, language: str) -> VoiceInfo:
    """Describe the voice `name`. `language` is a code, for names that do not show the language."""
    if parts := _KOKORO_NAME.fullmatch(name):
        letter, sex, title = parts.groups()
        code = KOKORO_LANGUAGES.get(letter, language)
        return _labelled(name, title.capitalize(), code, "woman" if sex == "f" else "man")
    if piper := piper_name(name):
        title = piper.speaker.replace("_", " ").title()
        pieces = [title, piper.within, "" if piper.quality == "medium" else f"({piper.quality})"]
        code = f"{piper.language}-{piper.region.lower()}"
        person = _names()["piper"].get(piper.speaker, "")
        return _labelled(name, " ".join(filter(None, pieces)), code, person)
    known = _names()
    label = known["people"].get(name) or known["languages"].get(name) or name
    return VoiceInfo(name, label, language)


def _labelled(name: str, title: str, language: str, person: str) -> VoiceInfo:
    adjectives = _names()["people"]
    people = adjectives.get(language) or adjectives.get(language.partition("-")[0], "")
    who = " ".join(filter(None, (people, person)))
    return VoiceInfo(name, f"{title}, {who}" if who else title, language)
