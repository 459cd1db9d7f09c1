"""The words of one turn: frozen ones, which are decoded no more, committed ones, on which two
hypotheses agree, and those that may still change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from voiceloop.asr.agreement import DividedWords, LocalAgreement, common_prefix, normalise
from voiceloop.types import Word


class Understood:
    """The words understood in one turn. A hypothesis is all the words of its `TurnWindow`."""

    def __init__(self) -> None:
        self._agreement = LocalAgreement()
        self._frozen: tuple[Word, ...] = ()
        """Frozen words, as they were committed."""
        self._settled: tuple[Word, ...] = ()
        """Frozen words, as their last decode has them."""
        self._unsettled: tuple[Word, ...] = ()
        """Words of that decode after them."""
        self._within_sentence = False
        """The window begins within a sentence, and the decoder takes it for a beginning."""

    @property
    def committed(self) -> tuple[Word, ...]:
        """Words that stay: frozen and committed ones, as they were committed."""
        return self._frozen + self._agreement.committed

    @property
    def settled(self) -> tuple[str, ...]:
        """Words of the window that two hypotheses agreed on."""
        return tuple(word.text for word in self._agreement.committed)

    def whole(self, hypothesis: Sequence[Word] | None) -> tuple[Word, ...]:
        """Return all words as the newest decode has them, where committed ones may be spelt and
        punctuated in another way by now."""
        return self._settled + tuple(self._unsettled if hypothesis is None else hypothesis)

    def fitted(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """Return the `words` of a decode without the capital at their beginning, where they go on
        with a frozen sentence."""
        if not (self._within_sentence and words):
            return words
        return (replace(words[0], text=_without_capital(words[0].text)), *words[1:])

    def update(self, hypothesis: Sequence[Word]) -> DividedWords:
        """Take the next hypothesis, and commit the words that it confirms."""
        return self._split(self._agreement.update(hypothesis))

    def trust(self, count: int) -> DividedWords:
        """Commit the first `count` words of the newest hypothesis, agreed on or not."""
        return self._split(self._agreement.commit(count))

    def confirmed(self, final: Sequence[Word]) -> int:
        """Return with how many of the committed words the `final` ones begin."""
        return common_prefix(_keys(self.committed), _keys(final))

    def let_stand(self, hypothesis: Sequence[Word], *, ends: bool) -> None:
        """Freeze all words. Later audio is decoded alone; it may go on with their sentence unless
        the sentence `ends`."""
        self._frozen += self._agreement.commit(len(hypothesis)).committed
        self._settled += tuple(hypothesis)
        self._agreement, self._unsettled = LocalAgreement(), ()
        last = "." if ends or not self._settled else self._settled[-1].text
        self._within_sentence = not last.endswith((".", "?", "!"))

    def freeze(self, hypothesis: Sequence[Word], cut: int) -> None:
        """Freeze the first `cut` words of the newest hypothesis."""
        self._frozen += self._agreement.freeze(cut)
        self._settled += tuple(hypothesis[:cut])
        self._unsettled = tuple(hypothesis[cut:])
        self._within_sentence = False

    def _split(self, split: DividedWords) -> DividedWords:
        return replace(split, committed=self._frozen + split.committed)


def _keys(words: Sequence[Word]) -> list[str]:
    return [normalise(word.text) for word in words]


def _without_capital(word: str) -> str:
    """Return a word as it is written within a sentence, where a decoder took it for the first."""
    alone = word.split("'")[0]
    return word if alone == "I" or not alone[1:].islower() else word[0].lower() + word[1:]
