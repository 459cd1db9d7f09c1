"""The everyday questions, and the rules that judge their answers.

`questions.toml` has the questions and explains the rules. This module asks nothing.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, convert

from voiceloop.asr.transcript import normalise
from voiceloop.languages.spoken import KNOWN

QUESTIONS = Path(__file__).with_name("questions.toml")
ADDED = ("wishes", "corrections", "follow-ups")
"""Kinds of the thirty questions that were added to the first sixty."""
MOST_TOKENS = 100
"""Maximum number of tokens in a right answer."""
_WHOLE = re.compile(r"[.!?…][\"'”’)\]]*$")  # noqa: RUF001
_UNSPEAKABLE = ("So", "Sk", "Cn", "Co", "Cs", "Cc")
"""Unicode categories of characters that cannot be spoken."""


class JudgedText(Struct, frozen=True, forbid_unknown_fields=True):
    """A text of the user, and the rule for its answer. Without a rule the answer is not judged."""

    say: str
    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    words: tuple[int, int] | None = None
    does: str = ""

    @property
    def judged(self) -> bool:
        """True if there is a rule."""
        return bool(self.any or self.all or self.none or self.words or self.does)


class TypedTalk(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation from its beginning."""

    kind: str
    turns: tuple[JudgedText, ...]


class Questions(Struct, frozen=True, forbid_unknown_fields=True):
    """All talks, and the patterns that their rules share."""

    patterns: Mapping[str, str]
    """Regular expressions that rules refer to by name."""
    talk: tuple[TypedTalk, ...]

    def named(self, pattern: str) -> str:
        """Return the shared pattern of this name; if there is none, return `pattern` itself."""
        return self.patterns.get(pattern, pattern)


class TypedAnswer(NamedTuple):
    """The answer to one text of the user."""

    text: str
    """The reply as written; empty if there was none."""
    tokens: int = 0
    cut: bool = False
    """True if the reply was cut off at the maximum number of tokens."""
    done: Sequence[str] = ()
    """Effects of the answer in the words of `JudgedText.does`, except for `stops` and `repeats`."""


def questions() -> Questions:
    """Return the questions."""
    return convert(tomllib.loads(QUESTIONS.read_text(encoding="utf-8")), Questions)


def wrong(ask: JudgedText, answer: TypedAnswer, before: str, questions: Questions) -> list[str]:
    """Return the faults of an answer, in a few words each; `before` is the previous reply."""
    said = answer.text.lower().replace("’", "'")  # noqa: RUF001
    found = [pattern for pattern in ask.all if not re.search(questions.named(pattern), said)]
    faults = [f"lacks {pattern}" for pattern in found]
    if ask.any and not any(re.search(questions.named(one), said) for one in ask.any):
        faults.append(f"lacks {' or '.join(ask.any)}")
    hits = (re.search(questions.named(pattern), said) for pattern in ask.none)
    faults += [f"says '{hit[0]}'" for hit in hits if hit]
    count = len(said.split())
    if ask.words and not ask.words[0] <= count <= ask.words[1]:
        faults.append(f"{count} words")
    if ask.does and not _has_done(ask.does, answer, before):
        faults.append(f"does not: {ask.does}")
    return faults + _unfit(answer)


def _has_done(what: str, answer: TypedAnswer, before: str) -> bool:
    match what:
        case "stops":
            return not answer.text.strip()
        case "repeats":
            return _words(answer.text) == _words(before)
        case _:
            return what in answer.done


def _words(text: str) -> list[str]:
    return [word for word in map(normalise, text.split()) if word]


def _unfit(answer: TypedAnswer) -> list[str]:
    """Return the faults that a reply can have whatever the rule is."""
    faults = list[str]()
    if answer.tokens > MOST_TOKENS:
        faults.append(f"{answer.tokens} tokens")
    if bad := [char for char in answer.text if not speakable(char)]:
        faults.append(f"cannot be spoken: {' '.join(dict.fromkeys(bad))}")
    text = answer.text.strip()
    if text and answer.cut and not _WHOLE.search(text):
        faults.append("breaks off")
    return faults


def speakable(char: str) -> bool:
    """Return whether a character can be spoken, or is punctuation or a space."""
    return char in KNOWN or char.isspace() or unicodedata.category(char) not in _UNSPEAKABLE
