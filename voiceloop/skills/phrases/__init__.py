"""The phrases of requests and answers, by language, and how languages put numbers, times and days
into words."""

from __future__ import annotations

from collections.abc import Mapping

from voiceloop.skills.phrases.de import GERMAN
from voiceloop.skills.phrases.en import ENGLISH
from voiceloop.skills.phrases.es import SPANISH
from voiceloop.skills.phrases.phrases import Phrases

PHRASES: Mapping[str, Phrases] = {one.code: one for one in (ENGLISH, GERMAN, SPANISH)}
"""The phrases of each language, by its code."""
