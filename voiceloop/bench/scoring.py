"""Word errors: the differences between the words that were said and those that were heard."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from voiceloop.asr.agreement import normalise
from voiceloop.languages.en import NUMBERS

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class WordErrors:
    """How a transcript differs from what was said."""

    words: int
    """Number of words that were said."""
    errors: int
    """Number of replaced, missing and added words in the alignment with the fewest errors."""
    tail: int
    """Number of words that are missing at the end of the transcript. It is the largest k with this
    property: without the last k words that were said, there are k errors fewer."""


def plain_words(text: str) -> list[str]:
    """Split `text` into words for comparison: without case and punctuation, numbers spelt out."""
    text = _NUMBER.sub(lambda number: f" {NUMBERS.cardinal(number[0])} ", text)
    return [word for word in map(normalise, re.split(r"[\s\u2010-\u2015-]+", text)) if word]


def word_errors(said: str, heard: str) -> WordErrors:
    """Compare a transcript with what was said."""
    true, found = plain_words(said), plain_words(heard)
    errors = _errors(true, found)
    lost = range(len(true), -1, -1)
    tail = next(k for k in lost if _errors(true[: len(true) - k], found) + k == errors)
    return WordErrors(len(true), errors, tail)


def _errors(true: list[str], found: list[str]) -> int:
    from jiwer import process_words

    compared = process_words(" ".join(true), " ".join(found))
    return compared.substitutions + compared.deletions + compared.insertions


def word_error_rate(compared: Iterable[WordErrors]) -> float | None:
    """Return the errors per word that was said; None if no word was said."""
    pairs = [(one.errors, one.words) for one in compared]
    words = sum(words for _, words in pairs)
    return sum(errors for errors, _ in pairs) / words if words else None
