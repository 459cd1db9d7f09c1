"""The everyday questions, and whether an answer to one of them is right.

`questions.toml` says what a rule means. This module runs nothing and reads no file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct, convert

from voiceloop.asr.agreement import normalise
from voiceloop.languages.spoken import KNOWN

MOST_TOKENS = 100
"""A reply has no more, unless it is asked to go on."""
_WHOLE = re.compile(r"[.!?…][\"'”’)\]]*$")  # noqa: RUF001
_UNSPEAKABLE = ("So", "Sk", "Cn", "Co", "Cs", "Cc")
"""Categories of characters that nobody can say."""


class Ask(Struct, frozen=True, forbid_unknown_fields=True):
    """What is said, and the rule for what is answered; without a rule nothing is judged."""

    say: str
    any: tuple[str, ...] = ()
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    words: tuple[int, int] | None = None
    does: str = ""

    @property
    def judged(self) -> bool:
        """There is a rule."""
        return bool(self.any or self.all or self.none or self.words or self.does)


class Talk(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation from its beginning."""

    kind: str
    turns: tuple[Ask, ...]


class Questions(Struct, frozen=True, forbid_unknown_fields=True):
    """All talks."""

    patterns: Mapping[str, str]
    """Patterns that rules call by name."""
    talk: tuple[Talk, ...]

    def named(self, pattern: str) -> str:
        """A pattern itself, or the one that goes by that name."""
        return self.patterns.get(pattern, pattern)


class Answer(NamedTuple):
    """What came of something that was said."""

    text: str
    """What was replied, as written; empty where nothing was."""
    tokens: int = 0
    cut: bool = False
    """It would have had more tokens than it may."""
    done: Sequence[str] = ()
    """What has been done, in the words of `Ask.does`, but for `stops` and `repeats`."""


def read(table: Mapping[str, Any]) -> Questions:
    """The questions in the table of their file. Raises msgspec.ValidationError."""
    return convert(table, Questions)


def wrong(ask: Ask, answer: Answer, before: str, questions: Questions) -> list[str]:
    """What is wrong with an answer, in a few words each; `before` is the reply before it."""
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


def _has_done(what: str, answer: Answer, before: str) -> bool:
    match what:
        case "stops":
            return not answer.text.strip()
        case "repeats":
            return _words(answer.text) == _words(before)
        case _:
            return what in answer.done


def _words(text: str) -> list[str]:
    return [word for word in map(normalise, text.split()) if word]


def _unfit(answer: Answer) -> list[str]:
    """What is wrong with any reply that is so."""
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
    """Whether a character has a sound, or is a mark or a space between such."""
    return char in KNOWN or char.isspace() or unicodedata.category(char) not in _UNSPEAKABLE
