"""Everything that voiceloop knows about single languages, with a module for each language.

For a language without a module there is `Language(code)`: only silence ends its turns, and the
synthesizer gets numbers and signs as they are written.
"""

from __future__ import annotations

from voiceloop.languages.de import GERMAN
from voiceloop.languages.en import ENGLISH
from voiceloop.languages.es import SPANISH
from voiceloop.languages.language import Language

AUTO = "auto"
"""Value in place of the code of a language. It means that the recogniser detects the language."""
LANGUAGES = {known.code: known for known in (ENGLISH, GERMAN, SPANISH)}
"""The languages that have a module, by code."""

__all__ = ["AUTO", "LANGUAGES", "Language", "language"]


def language(code: str) -> Language:
    """Return the language of a code such as `de`, `de-AT` or `en_us`. For a code without a module,
    or for any other text, return a language that voiceloop knows nothing about."""
    primary = code.replace("_", "-").partition("-")[0].lower()
    return LANGUAGES.get(primary) or Language(primary)
