"""Keeps the words of one turn: frozen, committed and tentative ones.

Words on which two hypotheses agree are committed. Committed words are frozen once their audio is
not decoded any more. All other words are tentative: they may still change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from voiceloop.asr.agreement import DividedWords, LocalAgreement, common_prefix, normalise
from voiceloop.types import Word


class Understood:
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
