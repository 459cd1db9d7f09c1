"""Text normalisation: puts numbers, signs, abbreviations, addresses, units and times into words.

The plain text is read once, so nothing is expanded twice. At each place the first of the `rules`
that matches replaces a piece of the text. Every spoken word records how much of the written text
has been said once the word has been said. A piece that becomes several words counts as said after
the last of them. `clauses` never cuts inside a piece, so a clause has the same spoken form alone
and within the whole reply. This module knows nothing of tokens and synthesizers.
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
    """Index of its first character in the spoken text."""
    end: int
    """Index of the character after its last one in the spoken text."""
    written: int
    """Number of written characters that have been said once this word has been said."""


class SpokenText(NamedTuple):
    """The spoken form of a text."""

    text: str
    """Words separated by single spaces, with marks only at the ends of words."""
    words: list[SaidWord]
    code: bool = False
    """True if the text contains code, which is mentioned but not read."""


def normalize(
    written: str, language: Language, *, before: str = "", code_said: bool = False
) -> SpokenText:
    """Return the spoken form of `written`, a clause of a reply in `language`; empty if nothing can
    be said.

    `before` is the text before the clause; some rules depend on it. The first code in the clause is
    replaced by a sentence that mentions the code, and all other code is left out. With `code_said`,
    all code is left out.
    """
    return _join(plain(before).text, plain(written), _compiled(language), code_said)


_Compiled = tuple[re.Pattern[str], dict[str, tuple[re.Pattern[str], Callable[[Match], str]]]]


@cache
def _compiled(language: Language) -> _Compiled:
    """Compile a pattern that finds the first matching rule, and the pattern of each rule alone."""
    found = rules(language)
    first = re.compile("|".join(f"(?P<{name}>{rule.pattern})" for name, rule in found.items()))
    return first, {name: (re.compile(rule.pattern), rule.say) for name, rule in found.items()}


def _join(context: str, source: PlainText, compiled: _Compiled, code_said: bool) -> SpokenText:
    first, alone = compiled
    words, written = list[str](), list[int]()
    text, skipped = context + source.text, len(context)
    for found in first.finditer(text, skipped):
        # Groups are numbered within each rule, so the rule is matched again, alone.
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
            # Marks and closing quotes count with the word before them.
            written[-1] = end
    return _spoken_text(words, written, CODE in source.text)


def _spoken_text(words: list[str], written: list[int], code: bool) -> SpokenText:
    text, said = "", list[SaidWord]()
    for word, count in zip(words, written, strict=True):
        start = len(text) + bool(text)
        text = f"{text} {word}" if text else word
        said.append(SaidWord(start, len(text), count))
    return SpokenText(text, said, code)


def _mark_word(words: list[str], mark: str) -> None:
    """Add `mark` to the last word, or let it replace a weaker mark there. A line break adds a
    period if the word has no mark."""
    word = words[-1]
    if word[-1] not in MARKS:
        words[-1] += "." if mark == "\n" else mark
    elif mark != "\n" and MARKS.index(mark) > MARKS.index(word[-1]):
        words[-1] = word[:-1] + mark
