"""What is to be known of a language to converse in it.

Words to compare with what was recognised, and how written things are said. Plain data and
functions of text: this module and its neighbours know nothing of audio, models or turns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from voiceloop.languages.spoken import SpeakingRules

START, NUMBER = "^", "#"
"""In endings: where what was said begins, and any number in digits."""

_WORD = re.compile(r"[^\W_]+(?:['.,:-][^\W_]+)*")
_TYPOGRAPHIC = str.maketrans({"’": "'"})  # noqa: RUF001 - it is meant

INTERNATIONAL = frozenset("ah aha hm hmm mhm mm mmm oh ok okay".split())
"""What listeners say in many languages."""


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language; with nothing but its code, one that nothing is known of.

    An *ending* is the last word of what was said or the last few, in lower case, separated by
    single spaces; it may hold `START` and `NUMBER`.
    """

    code: str
    """Two letters of ISO 639-1."""
    unfinished: frozenset[str] = frozenset()
    """Endings after which hardly anybody has finished; empty where the words tell nothing."""
    finished: frozenset[str] = frozenset()
    """Longer endings than those, after which people may well have finished all the same."""
    backchannels: frozenset[str] = INTERNATIONAL
    """Words that listeners say to be polite, as `agreement.normalise` spells them."""
    articles: frozenset[str] = frozenset()
    """Words that nobody says alone and recognisers make of a cough, spelled likewise."""
    sample: str = "Hello! This is how I sound."
    """What a voice says of itself where somebody tries it out."""
    apology: str = ""
    """What is said where a reply fails; empty says nothing."""
    nothing: str = ""
    """What is said in the place of a reply in which there is nothing to say; likewise."""
    spoken: SpeakingRules | None = None
    """How written things are said; None leaves them to the synthesizer."""

    def asks_for_more(self, text: str) -> bool:
        """True if `text` does not end as something that is finished: the longest ending that it
        has decides. Text without a word has not begun; where no endings are known it is False."""
        said = ending(text)
        for length in range(len(said), 0, -1):
            tail = " ".join(said[-length:])
            if tail in self.finished:
                return False
            if tail in self.unfinished:
                return True
        return bool(self.unfinished) and len(said) == 1


LONGEST = 6
"""Words of the longest ending, `START` counted."""


def ending(text: str) -> Sequence[str]:
    """The end of `text` in the form of an ending, as long as any."""
    words = _WORD.findall(text.lower().translate(_TYPOGRAPHIC))
    said = [START, *(NUMBER if word[0].isdecimal() else word for word in words)]
    return said[-LONGEST:]


def endings(*patterns: str) -> frozenset[str]:
    """The endings that `patterns` stand for: at each place of one any of the words between `|`.

    `who|where is` -> who is, where is
    """
    return frozenset(
        " ".join(words)
        for pattern in patterns
        for words in product(*(place.split("|") for place in pattern.split()))
    )
