"""Finds a phrase at the beginning of recognised words.

Letters are compared, not words, because a recogniser may divide the words differently ("compute
or"). A few letters may be wrong. This module knows nothing of audio, time or recognisers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile

from voiceloop.asr.agreement import normalise
from voiceloop.errors import ConfigError

LEAST_LETTERS, MOST_LETTERS = 5, 40
"""Minimum and maximum number of letters in a phrase. A shorter one is like many other words, and a
longer one takes too long to say."""
LETTERS_PER_ERROR, LETTERS_PER_ERROR_IF_SAID = 6, 3
"""A phrase may have one wrong letter for every `LETTERS_PER_ERROR` letters. In words that are known
to begin with the phrase, one letter may be wrong for every `LETTERS_PER_ERROR_IF_SAID` letters.
With three wrong letters, "my computer" would count as "okay computer"."""


class Phrase:
    """A phrase that the user says, such as "okay computer"."""

    def __init__(self, text: str) -> None:
        """Take the phrase `text`. Raises ConfigError if it has too few or too many letters."""
        self.name = " ".join(text.split())
        self._letters = _letters([self.name])
        if not LEAST_LETTERS <= len(self._letters) <= MOST_LETTERS:
            raise ConfigError(
                f"wake.phrase has {len(self._letters)} letters, and can have "
                f"{LEAST_LETTERS} to {MOST_LETTERS}",
                "take two or three words, such as 'okay computer'",
            )

    def count(self, words: Sequence[str], *, said: bool = False) -> int:
        """Return how many of the first `words` are the phrase; 0 if they are not. With `said`, they
        are known to begin with it, so more letters may be wrong.

        The result is the number of words that gives the fewest wrong letters. Among equal ones, the
        largest number counts.
        """
        most = len(self._letters) // (LETTERS_PER_ERROR_IF_SAID if said else LETTERS_PER_ERROR)
        beginnings = enumerate(accumulate(map(normalise, words)), start=1)
        near = takewhile(lambda one: len(one[1]) <= len(self._letters) + most, beginnings)
        wrong = [(edit_distance(letters, self._letters), -count) for count, letters in near]
        fewest, count = min(wrong, default=(most + 1, 0))
        return -count if fewest <= most else 0

    def begins(self, words: Sequence[str]) -> bool:
        """Return whether `words` have too few letters to decide whether they begin with the
        phrase."""
        most_wrong = len(self._letters) // LETTERS_PER_ERROR
        return len(_letters(words)) < len(self._letters) + most_wrong


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
