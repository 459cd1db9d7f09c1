"""Sentences that users of the suites say, and where in it a silence may be taken for the end.

Sentences are written with marks before a word, for what has been said up to there:

    |  whole: it can be answered as it stands       What color is red |and green together?
    ~  open: a sentence by its grammar, that does
       not say all that an answer needs             What |is the capital ~of Australia?

Everywhere else it is incomplete: its grammar asks for more. A number before its unit, an object
that a verb cannot do without, and a question word that only an earlier sentence could complete
("Tell me how") count as missing; "What?" is whole, it asks to hear something again. The sentences
stand in sentences.toml here and in voiceloop/bench.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from voiceloop.bench.suites import SENTENCES

Standing = Literal["incomplete", "open", "whole"]
"""How the words up to a place in a sentence stand by themselves."""

_MARKS: dict[str, Standing] = {"|": "whole", "~": "open"}
PUNCTUATION = ".,?!"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and how each of its beginnings stands by itself."""

    text: str
    standings: tuple[Standing, ...]
    """One for each place between two words."""

    @property
    def words(self) -> tuple[str, ...]:
        """Its words as written, with their punctuation."""
        return tuple(self.text.split())

    def prefix(self, words: int) -> str:
        """The first `words` words, without the punctuation at their end."""
        return " ".join(self.words[:words]).rstrip(PUNCTUATION)


def sentence(marked: str) -> Sentence:
    """A sentence in the notation of this module."""
    words = marked.split()
    standings = tuple[Standing, ...](_MARKS.get(word[0], "incomplete") for word in words[1:])
    return Sentence(" ".join(word.lstrip("|~") for word in words), standings)


AdditionKind = Literal["please", "now", "corrected", "more"]


@dataclass(frozen=True, slots=True)
class Addition:
    """Something said, and what it becomes when more is said after a pause."""

    kind: AdditionKind
    """`please`, `now` and `corrected` leave the answer as it was; `more` asks for another one."""
    first: str
    """As a recogniser would write it where the user had ended here."""
    longer: str

    @property
    def sentence(self) -> Sentence:
        """`longer`, of which `first` is the only beginning that is marked as whole."""
        words = self.longer.split()
        at = len(self.first.split())
        return sentence(" ".join([*words[:at], "|" + words[at], *words[at + 1 :]]))


def added(kind: AdditionKind, first: str, addition: str) -> Addition:
    """`first`, which ends with its mark, and `addition`, which ends with its own."""
    return Addition(kind, first, f"{first[:-1]}, {addition}")


_SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ADDITIONS = _SAID["additions"]
QUESTIONS = tuple(map(sentence, SENTENCES["questions"].strip().splitlines()))
"""Questions of the starter models' domain on which neither of them was trained."""
LONG_ANSWERS = tuple(map(sentence, SENTENCES["long_answers"].strip().splitlines()))
"""Those whose answers have 25 words or more."""
INTERRUPTIONS = tuple(_SAID["interruptions"])
"""What is said to end an answer."""
BACKCHANNELS = tuple(_SAID["backchannels"])
"""What is said while one listens, and does not ask for the floor."""
ADDITIONS = (
    *(added("please", text, f"please{text[-1]}") for text in _ADDITIONS["polite"]),
    *(added("now", text, f"right now{text[-1]}") for text in _ADDITIONS["polite"]),
    *(added("corrected", *pair) for pair in _ADDITIONS["corrected"]),
    *(added("more", *pair) for pair in _ADDITIONS["more"]),
)
"""A user who had finished, and goes on all the same."""
