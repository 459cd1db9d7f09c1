"""Everything that voiceloop knows of single languages: one module for each, and `language`.

A language that has no module of its own is `Language(code)`: the end of a turn is told by silence
alone, and numbers and signs are left to the synthesizer as they are written.
"""

from __future__ import annotations

from voiceloop.languages.de import GERMAN
from voiceloop.languages.en import ENGLISH
from voiceloop.languages.es import SPANISH
from voiceloop.languages.language import Language

AUTO = "auto"
"""In place of a code: whatever the recogniser finds to be spoken."""
LANGUAGES = {known.code: known for known in (ENGLISH, GERMAN, SPANISH)}
"""The languages that are filled in, by code."""

__all__ = ["AUTO", "LANGUAGES", "Language", "language"]


def language(code: str) -> Language:
    """The language of a code such as `de`, `de-AT` or `en_us`; any other text names an unknown
    one."""
    primary = code.replace("_", "-").partition("-")[0].lower()
    return LANGUAGES.get(primary) or Language(primary)
