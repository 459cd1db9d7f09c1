"""The words of one turn: those that are decoded no more, those that two hypotheses agree on, and
those that may still change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from voiceloop.asr.agreement import LocalAgreement, Split, common_prefix, normalise
from voiceloop.types import Word


class Understood:
    """What has been understood of one turn. A hypothesis is all the words of its `Window`."""

    def __init__(self) -> None:
        self._agreement = LocalAgreement()
        self._frozen: tuple[Word, ...] = ()
        """Words that are decoded no more, as they were committed."""
        self._settled: tuple[Word, ...] = ()
        """The same, as their last decode has them."""
        self._unsettled: tuple[Word, ...] = ()
        """What that decode had behind them."""
        self._within_sentence = False
        """The window begins within a sentence, which the decoder cannot know."""

    @property
    def committed(self) -> tuple[Word, ...]:
        """Words that stay, as they were committed."""
        return self._frozen + self._agreement.committed

    @property
    def settled(self) -> tuple[str, ...]:
        """Words of the window that two hypotheses agreed on."""
        return tuple(word.text for word in self._agreement.committed)

    def whole(self, hypothesis: Sequence[Word] | None) -> tuple[Word, ...]:
        """All words, as the newest decode has them: those that are committed may be spelt and
        marked in another way by now."""
        return self._settled + tuple(self._unsettled if hypothesis is None else hypothesis)

    def fitted(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """`words` of a decode, as they continue what is decoded no more."""
        if not (self._within_sentence and words):
            return words
        return (replace(words[0], text=_without_capital(words[0].text)), *words[1:])

    def update(self, hypothesis: Sequence[Word]) -> Split:
        """Commit what the next hypothesis confirms."""
        return self._split(self._agreement.update(hypothesis))

    def trust(self, count: int) -> Split:
        """Commit the newest hypothesis's first `count` words, agreed on or not."""
        return self._split(self._agreement.commit(count))

    def confirmed(self, final: Sequence[Word]) -> int:
        """How many of the committed words the `final` ones begin with."""
        return common_prefix(_keys(self.committed), _keys(final))

    def let_stand(self, hypothesis: Sequence[Word], *, ends: bool) -> None:
        """All words stay as they are, and what follows is decoded alone; where it `ends` nothing,
        it may go on with their sentence."""
        self._frozen += self._agreement.commit(len(hypothesis)).committed
        self._settled += tuple(hypothesis)
        self._agreement, self._unsettled = LocalAgreement(), ()
        last = "." if ends or not self._settled else self._settled[-1].text
        self._within_sentence = not last.endswith((".", "?", "!"))

    def freeze(self, hypothesis: Sequence[Word], cut: int) -> None:
        """The first `cut` words of the newest hypothesis are decoded no more."""
        self._frozen += self._agreement.freeze(cut)
        self._settled += tuple(hypothesis[:cut])
        self._unsettled = tuple(hypothesis[cut:])
        self._within_sentence = False

    def _split(self, split: Split) -> Split:
        return replace(split, committed=self._frozen + split.committed)


def _keys(words: Sequence[Word]) -> list[str]:
    return [normalise(word.text) for word in words]


def _without_capital(word: str) -> str:
    """`word`, which a decoder took for the first of a sentence, as it is within one."""
    alone = word.split("'")[0]
    return word if alone == "I" or not alone[1:].islower() else word[0].lower() + word[1:]
