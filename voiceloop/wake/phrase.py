"""A phrase, and how to tell it at the beginning of recognised words.

Letters are compared, not words: a recogniser may divide them differently ("compute or"). A few may
be wrong. This module knows nothing of audio, time or recognisers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from voiceloop.asr.agreement import normalise
from voiceloop.errors import ConfigError

LEAST_LETTERS, MOST_LETTERS = 5, 40
"""Bounds of the number of letters: a shorter phrase is like many other words, and a longer one takes
too long."""
LETTERS_PER_ERROR = 6
"""A phrase may have one wrong letter for each so many letters."""


class Phrase:
    """A phrase that the user says, such as "okay computer"."""

    def __init__(self, text: str) -> None:
        """Raises ConfigError for a phrase with too few or too many letters."""
        self.name = " ".join(text.split())
        self._letters = _letters([self.name])
        self._wrong = len(self._letters) // LETTERS_PER_ERROR
        if not LEAST_LETTERS <= len(self._letters) <= MOST_LETTERS:
            raise ConfigError(
                f"wake.phrase has {len(self._letters)} letters, and can have "
                f"{LEAST_LETTERS} to {MOST_LETTERS}",
                "take two or three words, such as 'okay computer'",
            )

    def count(self, words: Sequence[str]) -> int:
        """Return how many of the first `words` are the phrase; 0 if they are not.

        Of several numbers of words, the one with the fewest wrong letters is taken, and then the
        largest.
        """
        beginnings = enumerate(self._beginnings(words), start=1)
        wrong = [(edit_distance(said, self._letters), -count) for count, said in beginnings]
        fewest, count = min(wrong, default=(len(self._letters), 0))
        return -count if fewest <= self._wrong else 0

    def begins(self, words: Sequence[str]) -> bool:
        """Return whether `words` are too few to be the whole phrase."""
        return len(_letters(words)) < len(self._letters) + self._wrong

    def _beginnings(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the letters of the first word, the first two words, and so on, while they are not
        too many."""
        for said in accumulate(map(normalise, words)):
            if len(said) > len(self._letters) + self._wrong:
                return
            yield said


def edit_distance(left: str, right: str) -> int:
    """Return the smallest number of letters to insert, delete or replace to make `left` equal to
    `right` (Levenshtein 1966)."""
    distances = list(range(len(right) + 1))
    for row, letter in enumerate(left, start=1):
        diagonal, distances[0] = distances[0], row
        for column, other in enumerate(right, start=1):
            changed = diagonal + (letter != other)
            diagonal = distances[column]
            distances[column] = min(changed, diagonal + 1, distances[column - 1] + 1)
    return distances[-1]


def _letters(words: Sequence[str]) -> str:
    return "".join(map(normalise, words))
