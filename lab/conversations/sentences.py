"""Sentences that users of the suites say, with the places at which the user may have finished.

A mark before a word gives the standing of the words up to there:

    |  whole: they can be answered as they are      What color is red |and green together?
    ~  open: a sentence by its grammar, but
       without all that an answer needs             What |is the capital ~of Australia?

Words without a mark after them are incomplete: their grammar asks for more. They are also
incomplete if a number lacks its unit, if a verb lacks a necessary object, or if a question word
needs an earlier sentence ("Tell me how"). But "What?" is whole: it asks to hear something again.
The sentences are in the files sentences.toml here and in voiceloop/bench.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from voiceloop.bench.suites import SENTENCES

Standing = Literal["incomplete", "open", "whole"]
"""Whether the words up to a place in a sentence may be all that the user says."""

_MARKS: dict[str, Standing] = {"|": "whole", "~": "open"}
PUNCTUATION = ".,?!"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and the standing of each of its beginnings."""

    text: str
    standings: tuple[Standing, ...]
    """The standing at each place between two words."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words as written, with their punctuation."""
        return tuple(self.text.split())

    def prefix(self, words: int) -> str:
        """Return the first `words` words, without the punctuation at their end."""
        return " ".join(self.words[:words]).rstrip(PUNCTUATION)


def sentence(marked: str) -> Sentence:
    """Parse a sentence with marks, in the notation of this module."""
    words = marked.split()
    standings = tuple[Standing, ...](_MARKS.get(word[0], "incomplete") for word in words[1:])
    return Sentence(" ".join(word.lstrip("|~") for word in words), standings)


AdditionKind = Literal["please", "now", "corrected", "more"]


@dataclass(frozen=True, slots=True)
class Addition:
    """A whole sentence, and the longer sentence that it becomes when the user goes on."""

    kind: AdditionKind
    """`please`, `now` and `corrected` leave the answer as it was; `more` asks for another one."""
    first: str
    """The first sentence, as a recogniser would write it if the user had finished there."""
    longer: str
    """The first sentence and the addition."""

    @property
    def sentence(self) -> Sentence:
        """The sentence `longer`, in which only the beginning `first` is marked as whole."""
        words = self.longer.split()
        at = len(self.first.split())
        return sentence(" ".join([*words[:at], "|" + words[at], *words[at + 1 :]]))


def added(kind: AdditionKind, first: str, addition: str) -> Addition:
    """Add `addition` to `first`. Both end with punctuation; the mark of `first` becomes a comma."""
    return Addition(kind, first, f"{first[:-1]}, {addition}")


_SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ADDITIONS = _SAID["additions"]
QUESTIONS = tuple(map(sentence, SENTENCES["questions"].strip().splitlines()))
"""Questions of the starter models' domain, on which these models were not trained."""
LONG_ANSWERS = tuple(map(sentence, _SAID["long_answers"]))
"""Questions of the starter models' domain with answers of 25 words or more."""
INTERRUPTIONS = tuple(_SAID["interruptions"])
"""Words with which users interrupt a reply."""
BACKCHANNELS = tuple(_SAID["backchannels"])
"""Words of a listener who does not want the floor."""
ADDITIONS = (
    *(added("please", text, f"please{text[-1]}") for text in _ADDITIONS["polite"]),
    *(added("now", text, f"right now{text[-1]}") for text in _ADDITIONS["polite"]),
    *(added("corrected", *pair) for pair in _ADDITIONS["corrected"]),
    *(added("more", *pair) for pair in _ADDITIONS["more"]),
)
"""Additions of users who go on after a whole sentence."""
