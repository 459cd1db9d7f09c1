"""Keeps the words of one turn: frozen, committed and tentative ones.

An audio window grows while the user speaks, and is decoded again and again. A hypothesis is all the
words of one decode. A word is committed once two successive hypotheses agree on all words up to it
(LocalAgreement-2: Liu, Niehues et al. 2020, arXiv 2005.11185; Macháček et al. 2023, arXiv
2307.14743). From then on it stays in the transcript. Words are compared in normalised form, so that
a comma or a capital does not delay a commit. Committed words are frozen once their audio is not
decoded any more. All other words are tentative: they may still change. This module knows nothing of
audio, time or decoders.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from voiceloop.languages.language import is_hum
from voiceloop.types import Word


def normalise(text: str) -> str:
    """Normalise `text` for comparisons: apply NFKC, fold the case, and keep only letters and
    digits."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def answering(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return all `words` of a turn, or none if all of them are hums, which answer nothing."""
    keys = [key for word in words if (key := normalise(word.text))]
    return () if all(map(is_hum, keys)) else words


def common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest prefix that both sequences share."""
    pairs = zip(left, right, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def repeats(words: Sequence[str]) -> bool:
    """Return whether a phrase of three or more words comes twice in a row in `words`, or a phrase
    of two words comes twice at their end. Then the decoder may be in a loop. But the speaker may
    also have said something twice."""
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
    """All committed words, spelt as when they were committed."""
    tentative: tuple[Word, ...]
    """Words of the hypothesis after the committed ones."""
    cuts: tuple[int, ...]
    """Places at which `LocalAgreement.freeze` can cut the hypothesis, in ascending order. Each is
    the number of words before the cut."""


class LocalAgreement:
    """Holds the committed words of one window. `update` and `commit` add words at the end, and
    `freeze` removes words at the beginning."""

    def __init__(self) -> None:
        self.committed: tuple[Word, ...] = ()
        self._hypothesis: tuple[Word, ...] = ()
        self._keys: list[str] = []

    def update(self, words: Sequence[Word]) -> DividedWords:
        """Take the next hypothesis, and commit the prefix that it shares with the previous one.

        Words that become committed here are spelt as in `words`.
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
        """Remove and return the committed words that match the first `cut` words of the newest
        hypothesis. `cut` is one of `DividedWords.cuts`. Later hypotheses must begin after these
        words."""
        said = [normalise(word.text) for word in self.committed]
        count = cut if said == self._keys[: len(said)] else len(said)
        frozen, self.committed = self.committed[:count], self.committed[count:]
        self._hypothesis, self._keys = self._hypothesis[cut:], self._keys[cut:]
        return frozen

    def _position(self, keys: Sequence[str]) -> int:
        """Return how many of the first `keys` stand for the committed words.

        `keys` are the normalised words of a hypothesis. If they do not begin with the committed
        words, the beginning of `keys` with the smallest edit distance to the committed words is
        chosen. Among equal distances, a beginning that ends with the last committed word comes
        first, and then the one that is nearest in length to the committed words.
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


class TranscriptBuffer:
    """The words understood in one turn. A hypothesis is all the words that one decode gives for the
    turn's `TurnWindow`."""

    def __init__(self) -> None:
        self._agreement = LocalAgreement()
        self._frozen: tuple[Word, ...] = ()
        """Frozen words, spelt as when they were committed."""
        self._latest: tuple[Word, ...] = ()
        """Frozen words, spelt as in the last decode of their audio."""
        self._latest_rest: tuple[Word, ...] = ()
        """Words of the hypothesis that `freeze` cut, from the cut on. They are valid until the next
        decode."""
        self._within_sentence = False
        """Whether the window begins in the middle of a sentence. The decoder writes the first word
        of a window with a capital even then."""

    @property
    def committed(self) -> tuple[Word, ...]:
        """Frozen and committed words, spelt as when they were committed. They do not change any
        more."""
        return self._frozen + self._agreement.committed

    @property
    def settled(self) -> tuple[str, ...]:
        """Texts of the committed words that are not frozen."""
        return tuple(word.text for word in self._agreement.committed)

    def whole(self, hypothesis: Sequence[Word] | None) -> tuple[Word, ...]:
        """Return all words of the turn as in the newest decodes. These may spell and punctuate
        committed words differently. `hypothesis` holds the words of the newest decode. It is None
        if there was no decode since words were last frozen."""
        return self._latest + tuple(self._latest_rest if hypothesis is None else hypothesis)

    def fitted(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """Return `words`. If they continue a frozen sentence, the first word loses its capital."""
        if not (self._within_sentence and words):
            return words
        return (replace(words[0], text=_without_capital(words[0].text)), *words[1:])

    def update(self, hypothesis: Sequence[Word]) -> DividedWords:
        """Take the next hypothesis, and commit the words on which it agrees with the previous
        one."""
        return self._split(self._agreement.update(hypothesis))

    def trust(self, count: int) -> DividedWords:
        """Commit the first `count` words of the newest hypothesis, even if two hypotheses do not
        agree on them."""
        return self._split(self._agreement.commit(count))

    def confirmed(self, final: Sequence[Word]) -> int:
        """Return how many of the committed words agree with the beginning of `final`."""
        return common_prefix(_keys(self.committed), _keys(final))

    def let_stand(self, hypothesis: Sequence[Word], *, ends: bool) -> None:
        """Freeze all words of `hypothesis`, which must be the newest one. Later audio is decoded
        alone. `ends` says whether the last sentence is over; otherwise later audio may continue
        it."""
        self._frozen += self._agreement.commit(len(hypothesis)).committed
        self._latest += tuple(hypothesis)
        self._agreement, self._latest_rest = LocalAgreement(), ()
        last = "." if ends or not self._latest else self._latest[-1].text
        self._within_sentence = not last.endswith((".", "?", "!"))

    def freeze(self, hypothesis: Sequence[Word], cut: int) -> None:
        """Freeze the first `cut` words of `hypothesis`, which must be the newest one."""
        self._frozen += self._agreement.freeze(cut)
        self._latest += tuple(hypothesis[:cut])
        self._latest_rest = tuple(hypothesis[cut:])
        self._within_sentence = False

    def _split(self, split: DividedWords) -> DividedWords:
        return replace(split, committed=self._frozen + split.committed)


def _keys(words: Sequence[Word]) -> list[str]:
    return [normalise(word.text) for word in words]


def _without_capital(word: str) -> str:
    """Return `word` with its first letter in lower case. A word of one letter stays as it is, and
    so do "I'm" and a word with other capitals."""
    alone = word.split("'")[0]
    return word if alone == "I" or not alone[1:].islower() else word[0].lower() + word[1:]
