"""How written text is said: numbers, signs, abbreviations, addresses, units and times in words.

One pass over the plain text, so nothing is expanded twice: at each place the first of the `rules`
that matches takes its piece. Every spoken word knows how much of the written text has been said
with it; a thing that becomes several words counts with the last of them. `clauses` never cuts
inside what a rule takes as one, so a clause is said as it would be within the whole reply. This
module knows nothing of tokens and of synthesizers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from voiceloop.languages import Language
from voiceloop.languages.spoken import CODE, Match
from voiceloop.tts.plain import PlainText, plain
from voiceloop.tts.rules import MARKS, rules


class SaidWord(NamedTuple):
    """A spoken word with the punctuation that follows it."""

    start: int
    """First character in the spoken text."""
    end: int
    """Character after the last in the spoken text."""
    written: int
    """Characters of the written text that have been said once this word has been."""


class SpokenText(NamedTuple):
    """A text as it is said."""

    text: str
    """Words separated by single spaces; marks only at the ends of words."""
    words: list[SaidWord]
    code: bool = False
    """It holds code, of which no more than that is said."""


def normalize(
    written: str, language: Language, *, before: str = "", code_said: bool = False
) -> SpokenText:
    """`written`, a clause of a reply, as it is said in `language`; empty where nothing in it can
    be said. What stands `before` it tells what it means. That there is code is said once; not if
    it has been, by `code_said`."""
    return _join(plain(before).text, plain(written), _compiled(language), code_said)


_Compiled = tuple[re.Pattern[str], dict[str, tuple[re.Pattern[str], Callable[[Match], str]]]]


@cache
def _compiled(language: Language) -> _Compiled:
    """What finds the rule that comes first, and each rule by itself."""
    found = rules(language)
    first = re.compile("|".join(f"(?P<{name}>{rule.pattern})" for name, rule in found.items()))
    return first, {name: (re.compile(rule.pattern), rule.say) for name, rule in found.items()}


def _join(context: str, source: PlainText, compiled: _Compiled, code_said: bool) -> SpokenText:
    first, alone = compiled
    words, written = list[str](), list[int]()
    text, skipped = context + source.text, len(context)
    for found in first.finditer(text, skipped):
        # Groups are numbered within each rule, so the rule that was found is matched by itself.
        pattern, say = alone[str(found.lastgroup)]
        match = pattern.match(text, found.start())
        assert match is not None
        start = found.start() - skipped
        before = source.at[start - 1] if start else 0
        end = source.at[found.end() - skipped - 1]
        silent = match[0] == CODE and code_said
        code_said = code_said or match[0] == CODE
        pieces = [] if silent else re.findall(r"\n|[^\s]+", say(match))
        for piece in pieces:
            if piece.strip(MARKS + "\n"):
                words.append(piece)
                written.append(before)
            elif words:
                _mark_word(words, piece)
        spaced = match[0].isspace() or text[found.start() - 1].isspace()
        if words and (pieces or not spaced):
            # Marks, and quotes that close, count with their word.
            written[-1] = end
    return _said(words, written, CODE in source.text)


def _said(words: list[str], written: list[int], code: bool) -> SpokenText:
    text, said = "", list[SaidWord]()
    for word, count in zip(words, written, strict=True):
        start = len(text) + bool(text)
        text = f"{text} {word}" if text else word
        said.append(SaidWord(start, len(text), count))
    return SpokenText(text, said, code)


def _mark_word(words: list[str], mark: str) -> None:
    """Put `mark` behind the last word, unless a stronger one is there; a line's end is a period
    where there is none."""
    word = words[-1]
    if word[-1] not in MARKS:
        words[-1] += "." if mark == "\n" else mark
    elif mark != "\n" and MARKS.index(mark) > MARKS.index(word[-1]):
        words[-1] = word[:-1] + mark
