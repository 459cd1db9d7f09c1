"""Text normalisation: puts numbers, signs, abbreviations, addresses, units and times into words.

The plain text is read once, so nothing is expanded twice. At each place the first of the `rules`
that matches replaces a piece of the text. Every spoken word records how much of the written text
has been said once the word has been said. A piece that becomes several words counts as said after
the last of them. `clauses` never cuts inside a piece, so a clause has the same spoken form alone
and within the whole reply.

A rule may look at the text around its match, but replaces only the match. If a rule returns only
marks, they are added to the word before. A line break adds a period, unless the word before has a
mark. The last rule matches any character and says nothing. This module knows nothing of tokens and
synthesizers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from voiceloop.languages import Language
from voiceloop.languages.spoken import CODE, Match
from voiceloop.tts.markup import plain
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
    first, alone = _compiled(language)
    context, source = plain(before).text, plain(written)
    words, counts = list[str](), list[int]()
    text, skipped = context + source.text, len(context)
    for found in first.finditer(text, skipped):
        # Groups are numbered within each rule, so the rule is matched again, alone.
        pattern, say = alone[str(found.lastgroup)]
        match = pattern.match(text, found.start())
        assert match is not None
        start = found.start() - skipped
        said_before = source.at[start - 1] if start else 0
        silent = match[0] == CODE and code_said
        code_said = code_said or match[0] == CODE
        pieces = [] if silent else re.findall(r"\n|[^\s]+", say(match))
        for piece in pieces:
            if piece.strip(MARKS + "\n"):
                words.append(piece)
                counts.append(said_before)
            elif words:
                words[-1] = _marked(words[-1], piece)
        spaced = match[0].isspace() or text[found.start() - 1].isspace()
        if words and (pieces or not spaced):
            # Marks and closing quotes count with the word before them.
            counts[-1] = source.at[found.end() - skipped - 1]
    ends = accumulate(len(word) + 1 for word in words)
    said = [
        SaidWord(end - 1 - len(word), end - 1, count)
        for word, end, count in zip(words, ends, counts, strict=True)
    ]
    return SpokenText(" ".join(words), said, CODE in source.text)


@cache
def _compiled(
    language: Language,
) -> tuple[re.Pattern[str], dict[str, tuple[re.Pattern[str], Callable[[Match], str]]]]:
    """Compile a pattern that finds the first matching rule, and the pattern of each rule alone."""
    found = rules(language)
    # The names of groups are those of the rules, so the groups within the rules have none.
    within = {name: re.sub(r"\(\?P<\w+>", "(", rule.pattern) for name, rule in found.items()}
    first = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in within.items()))
    return first, {name: (re.compile(rule.pattern), rule.say) for name, rule in found.items()}


def _marked(word: str, mark: str) -> str:
    """Add `mark` to `word`, or let it replace a weaker mark there. A line break adds a period if
    the word has no mark."""
    if word[-1] not in MARKS:
        return word + ("." if mark == "\n" else mark)
    stronger = mark != "\n" and MARKS.index(mark) > MARKS.index(word[-1])
    return word[:-1] + mark if stronger else word
