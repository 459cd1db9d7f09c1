"""Describes voices for people, from the names of the voices.

Names of Kokoro's and Piper's voices contain language and region, and Kokoro's also the sex of the
speaker. For Piper's voices the sex is in a table, as far as it is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LANGUAGES = {
    code: name
    for code, _, name in (
        entry.strip().partition(" ")
        for entry in """
        af Afrikaans, am Amharic, an Aragonese, ar Arabic, as Assamese, az Azerbaijani,
        ba Bashkir, be Belarusian, bg Bulgarian, bn Bengali, bs Bosnian, ca Catalan, chr Cherokee,
        cmn Chinese, cs Czech, cv Chuvash, cy Welsh, da Danish, de German, el Greek, en English,
        eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish, fo Faroese,
        fr French, ga Irish, gd Gaelic, gn Guarani, grc Ancient Greek, gu Gujarati, hak Hakka,
        haw Hawaiian, hbs Croatian, he Hebrew, hi Hindi, hr Croatian, ht Haitian Creole,
        hu Hungarian, hy Armenian, ia Interlingua, id Indonesian, io Ido, is Icelandic,
        it Italian, ja Japanese, jbo Lojban, ka Georgian, kaa Karakalpak, kk Kazakh,
        kl Greenlandic, kn Kannada, ko Korean, kok Konkani, ku Kurdish, ky Kyrgyz, la Latin,
        lb Luxembourgish, lt Lithuanian, ltg Latgalian, lv Latvian, mi Māori, mk Macedonian,
        ml Malayalam, mr Marathi, ms Malay, mt Maltese, my Burmese, nb Norwegian, nci Nahuatl,
        ne Nepali, nl Dutch, no Norwegian, nog Nogai, om Oromo, or Odia, pa Punjabi,
        pap Papiamento, pl Polish, pt Portuguese, qu Quechua, quc K'iche', ro Romanian,
        ru Russian, sd Sindhi, shn Shan, si Sinhala, sk Slovak, sl Slovenian, smj Lule Sámi,
        sq Albanian, sr Serbian, sv Swedish, sw Swahili, ta Tamil, te Telugu, th Thai,
        ti Tigrinya, tk Turkmen, tn Setswana, tr Turkish, tt Tatar, ug Uyghur, uk Ukrainian,
        ur Urdu, uz Uzbek, vi Vietnamese, yue Cantonese, zh Chinese
        """.split(",")
    )
}
"""Names of languages, by code."""
PEOPLE = {
    "de": "German",
    "en": "British",
    "en-029": "Caribbean",
    "en-gb": "British",
    "en-gb-scotland": "Scottish",
    "en-gb-x-gbclan": "Lancastrian",
    "en-gb-x-gbcwmd": "West Midlands",
    "en-gb-x-rp": "Received Pronunciation",
    "en-us": "American",
    "en-us-nyc": "New Yorker",
    "es": "Spanish",
    "es-419": "Latin American",
    "es-ar": "Argentinian",
    "es-mx": "Mexican",
    "fr": "French",
    "fr-be": "Belgian",
    "fr-ch": "Swiss",
    "hi": "Indian",
    "it": "Italian",
    "nl": "Dutch",
    "nl-be": "Flemish",
    "pt": "Portuguese",
    "pt-br": "Brazilian",
}
"""Adjectives for speakers, by the code of their language, with or without a region: `en-gb`."""
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
PIPER_PEOPLE = {
    "alba": "woman",
    "cori": "woman",
    "davefx": "man",
    "joe": "man",
    "kristin": "woman",
    "thorsten": "man",
}
"""Whether a speaker of Piper's voices is a woman or a man, as far as it is known."""

_KOKORO_NAME = re.compile(r"([a-z])([fm])_(\w+)", re.ASCII)
_PIPER_NAME = re.compile(
    r"([a-z]{2,3})_([A-Z]{2,3})-(\w+)-(x_low|low|medium|high)(?:/(.+))?", re.ASCII
)


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
        return LANGUAGES.get(self.language.partition("-")[0], "")


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
        person = PIPER_PEOPLE.get(piper.speaker, "")
        return _labelled(name, " ".join(filter(None, pieces)), code, person)
    return VoiceInfo(name, PEOPLE.get(name) or LANGUAGES.get(name) or name, language)


def _labelled(name: str, title: str, language: str, person: str) -> VoiceInfo:
    people = PEOPLE.get(language) or PEOPLE.get(language.partition("-")[0], "")
    who = " ".join(filter(None, (people, person)))
    return VoiceInfo(name, f"{title}, {who}" if who else title, language)
