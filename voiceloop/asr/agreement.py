"""LocalAgreement-2: commit a word once two successive hypotheses agree on all words up to it.

Source: Liu, Niehues et al. 2020 (arXiv 2005.11185) and Macháček et al. 2023 (arXiv 2307.14743).
Here words are compared in normalised form, so that a comma or a capital does not delay a commit. A
hypothesis is all the words that one decode gives for a growing audio window. This module knows
nothing of audio, time or decoders.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from voiceloop.types import Word


def normalise(text: str) -> str:
    """Return `text` in the form in which words are compared: NFKC, casefolded, and only letters and
    digits."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest prefix that both sequences share."""
    pairs = zip(left, right, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def repeats(words: Sequence[str]) -> bool:
    """Return whether a phrase of three or more words is said twice in a row, or whether `words` end
    with a phrase of two words said twice. People do so now and then, and decoders in a loop do it
    again and again."""
    said = [key for word in words if (key := normalise(word))]
    return any(
        said[at - length : at] == said[at : at + length]
        for length in range(2, len(said) // 2 + 1)
        for at in range(length, len(said) - length + 1)
        if length > 2 or at + length == len(said)
    )


@dataclass(frozen=True, slots=True)
class DividedWords:
    """A hypothesis, divided at the end of its committed words."""

    committed: tuple[Word, ...]
    """All committed words, in the form in which they were committed."""
    tentative: tuple[Word, ...]
    """Words of the hypothesis after the committed ones."""
    cuts: tuple[int, ...]
    """The places at which `freeze` can cut the hypothesis: numbers of words from its beginning, in
    ascending order."""


class LocalAgreement:
    """The committed words of one window. Words are added at their end, and only `freeze` takes some
    out."""

    def __init__(self) -> None:
        self.committed: tuple[Word, ...] = ()
        self._hypothesis: tuple[Word, ...] = ()
        self._keys: list[str] = []

    def update(self, words: Sequence[Word]) -> DividedWords:
        """Take the next hypothesis, and commit the prefix that it shares with the previous one.

        The committed words are spelt as in the newer hypothesis.
        """
        keys = [normalise(word.text) for word in words]
        agreed = common_prefix(self._keys, keys)
        self._hypothesis, self._keys = tuple(words), keys
        return self.commit(agreed)

    def commit(self, count: int) -> DividedWords:
        """Commit the first `count` words of the newest hypothesis, even if two hypotheses do not
        agree on them."""
        position = self._position(self._keys)
        if count > position:
            self.committed += self._hypothesis[position:count]
            position = count
        said = [normalise(word.text) for word in self.committed]
        # If the hypothesis spells the committed words differently, single words cannot be matched,
        # so the only cut is after all of them.
        cuts = range(1, position + 1) if said == self._keys[:position] else (position,)
        return DividedWords(self.committed, self._hypothesis[position:], tuple(cuts))

    def freeze(self, cut: int) -> tuple[Word, ...]:
        """Take out and return the committed words that match the first `cut` words of the newest
        hypothesis. `cut` is one of `DividedWords.cuts`. Later hypotheses begin after these
        words."""
        said = [normalise(word.text) for word in self.committed]
        count = cut if said == self._keys[: len(said)] else len(said)
        frozen, self.committed = self.committed[:count], self.committed[count:]
        self._hypothesis, self._keys = self._hypothesis[cut:], self._keys[cut:]
        return frozen

    def _position(self, keys: Sequence[str]) -> int:
        """Return the length of the prefix of `keys` that matches the committed words.

        If a hypothesis spells them differently, the prefix with the least edit distance to them
        matches. Of several, a prefix that ends with the same word is taken, and then the one whose
        length is nearest to the number of committed words.
        """
        said = [normalise(word.text) for word in self.committed]
        if said == list(keys[: len(said)]):
            return len(said)
        distances = list(range(len(keys) + 1))
        for row, word in enumerate(said):
            diagonal, distances[0] = distances[0], row + 1
            for column, key in enumerate(keys, start=1):
                changed = diagonal + (word != key)
                diagonal = distances[column]
                distances[column] = min(changed, diagonal + 1, distances[column - 1] + 1)

        def cost(position: int) -> tuple[int, bool, int]:
            ends_alike = position > 0 and keys[position - 1] == said[-1]
            return distances[position], not ends_alike, abs(position - len(said))

        return min(range(len(keys) + 1), key=cost)
