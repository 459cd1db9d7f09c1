"""Cuts the reply into clauses while it is being written.

The first clause is cut as early as is safe, because the user waits for it; then comes the rest of
its sentence, then sentence by sentence. Text is taken character by character, and a cut is made at
the first character after which nothing that may follow could make it wrong: at the space after a
comma, at the space after a sentence's end where the sentence splitter says so whatever word comes
next (else once that word is complete), at a line break at once. So it makes no difference in which
pieces the text arrives. This module does not know how a clause is spoken, nor how fast text comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast
from unicodedata import category

import sentencex  # pyright: ignore[reportMissingTypeStubs]

from voiceloop.languages import Language
from voiceloop.languages.spoken import SpeakingRules, alternatives
from voiceloop.tts.markup import behind_blocks
from voiceloop.tts.normalize import normalize
from voiceloop.tts.tokencount import TokenCount
from voiceloop.types import Clause, Span, TokenBurst

FIRST_WORDS, FIRST_CHARS = 3, 12
"""The first clause has at least so many words or so many characters, unless its line is shorter:
less would be over before the next clause is there."""
FORCED_WORDS, FORCED_ANYWHERE = 6, 8
"""After so many words without a mark the first clause ends: between a longer word and a short one,
which mostly opens a phrase, or between any two."""
LONG_CHARS, LONGEST_CHARS = 200, 300
"""A later clause of so many characters ends at any mark, or at any word."""
YOUNG_CHARS, YOUNGEST = 50, 0.25
"""Before so many characters have been cut off, those limits shrink in proportion, to a quarter at
the least: "Dear Grandmother," is over before a whole long sentence is written."""
CONTEXT = 200
"""Characters before a clause that tell what it means; of its sentence the splitter sees them."""
PROBES = ("The ", "the ", "Qx ", "5 ")
"""Kinds of next words: one that begins sentences, one that goes on, a name, a number."""

_CLOSERS = r"[\"'”’»)\]}*_`]*"  # noqa: RUF001
_SENTENCE_END = re.compile(rf"[.!?…]({_CLOSERS})$")
_CLAUSE_END = re.compile(
    rf"(?:[,;:]|\.\.\.|…){_CLOSERS}$"  # a mark
    rf"|(?:[^\W\d_²³]{{2}}{_CLOSERS}\s+(?:--?|[–—])|[^\W\d]—)$"  # noqa: RUF001 - a dash, not a minus
)
_NUMBER_MARK = re.compile(r"\d[,:;]$|\d\s?[^\W\d_]{1,12}\.?\s+[-–]$")  # noqa: RUF001
_ENUMERATOR = re.compile(r"(?:^|\n|[.!?:;]\s)[\s*_#>-]*[(\[]?(?:\d{1,3}|[A-Za-z])[.)]$")
_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")  # noqa: RUF001
_SAYABLE = re.compile(r"[^\W_]")
_ENTITY = re.compile(r"&#?\w+;$")
_LAST_WORD = re.compile(r"(?:^|\s)[^\W\d_]+$")
_NEW_PHRASE = re.compile(r"(?<=[^\W\d_]{5})\s+[^\W\d_]{1,4}$")
_OPENED = re.compile(
    r"\[[^\]\n]*$|\]\([^)\s]*$"  # a link
    r"|(?<![^\W_])(\*|_)(?=[^\s*_])(?:(?!\1)[^\n])*$"  # emphasis
    r"|(?<![\w$\\])\$(?=[A-Za-z\\(])[^$\n]{0,60}$"  # a formula
)
# What the splitter cannot take, or takes for the end of a paragraph.
_SPLITTABLE = re.compile("[\ud800-\udfff\r\n]")


def cut(text: str, language: Language) -> list[Clause]:
    """The clauses of a text that is all there, as if a reply had brought it in one piece."""
    cutter = ClauseCutter(0, language)
    return cutter.feed(TokenBurst(0, (0,), text)) + cutter.flush()


class ClauseCutter:
    """Cuts one reply. `feed` it bursts in order, then `flush` it once.

    The texts of the clauses, joined, are the reply's text exactly: a clause ends behind its mark,
    so the space that follows begins the next clause, but a line break ends the clause before it.
    """

    def __init__(self, turn: int, language: Language) -> None:
        """`language` is the one that the reply will be spoken in."""
        self._turn = turn
        self._language = language
        self._runs_on = language.spoken and _going_on(language.spoken)
        self._index = 0
        self._code_said = False
        """It has been said that there is code, which is enough once in a reply."""
        self._piece = ""
        self._before = ""
        """The part of the sentence that earlier clauses hold."""
        self._past = ""
        """The end of all that they hold."""
        self._undecided: int | None = None
        """Where in the piece a sentence may have ended: the next word tells."""
        self._start = 0
        """Characters of the reply before the piece."""
        self._tokens = TokenCount()

    def feed(self, burst: TokenBurst) -> list[Clause]:
        """The clauses that the reply's next tokens complete."""
        self._tokens.add(burst)
        return [clause for char in burst.text for clause in self._push(char)]

    def flush(self) -> list[Clause]:
        """What is left at the end of the reply; the last clause is always there, if only empty."""
        rest = list[Clause]()
        if self._undecided is not None and self._splits(self._undecided, ""):
            rest.append(self._cut(self._undecided, ends_sentence=True))
        return [*rest, self._clause(self._piece, last=True)]

    def _push(self, char: str) -> Iterator[Clause]:
        end = self._undecided
        if end is not None and char.isspace() and self._piece[end:].strip():
            self._undecided = None
            if self._splits(end, char):
                yield self._cut(end, ends_sentence=True)
        spaced = self._piece[-1:].isspace()
        if char == "\n":
            self._piece += char
            if self._may_cut(self._piece.rstrip(), line=True):
                yield self._cut(len(self._piece), ends_sentence=True)
        elif char.isspace():
            if self._piece and not spaced:
                yield from self._at_space()
            self._piece += char
        else:
            if self._undecided is None and self._ends_before(char, spaced):
                yield self._cut(len(self._piece.rstrip()), ends_sentence=False)
            self._piece += char

    def _at_space(self) -> Iterator[Clause]:
        """A space follows the piece: does a mark at its end cut it?"""
        end = len(self._piece)
        if not self._may_cut(self._piece):
            return
        verdicts = set[bool]()
        if _SENTENCE_END.search(self._piece):
            verdicts = {self._splits(end, f" {probe}") for probe in PROBES}
        if verdicts == {True}:
            yield self._cut(end, ends_sentence=True)
        elif self._at_mark(self._piece) and not _NUMBER_MARK.search(self._piece):
            yield self._cut(end, ends_sentence=False)
        elif len(verdicts) == 2:
            self._undecided = end
        elif self._index == 0 and (phrase := _NEW_PHRASE.search(self._piece)):
            head = self._piece[: phrase.start()]
            if len(_WORD.findall(head)) >= FORCED_WORDS and self._may_cut(head):
                yield self._cut(len(head), ends_sentence=False)

    def _ends_before(self, char: str, spaced: bool) -> bool:
        """Whether the piece ends as a clause where `char` begins the next word."""
        head = self._piece.rstrip()
        if not spaced:
            return head.endswith("—") and char.isalpha() and self._at_mark(head)
        # In "May 5, 2024" the comma belongs to the date, in "5 kg - 10 kg" the dash to the range.
        if _NUMBER_MARK.search(head):
            amount = char.isdigit() or (head[-1] in "-–" and category(char) == "Sc")  # noqa: RUF001
            return not amount and self._at_mark(head)
        if not char.isalpha() or not _LAST_WORD.search(head) or not self._may_cut(head):
            return False
        if self._index:
            return len(head) >= LONGEST_CHARS * self._age
        return len(_WORD.findall(head)) >= FORCED_ANYWHERE

    @property
    def _age(self) -> float:
        """What share of its full length a clause may have."""
        return min(max(self._start / YOUNG_CHARS, YOUNGEST), 1.0)

    def _at_mark(self, head: str) -> bool:
        allowed = self._index == 0 or len(head) >= LONG_CHARS * self._age
        return allowed and bool(_CLAUSE_END.search(head)) and self._may_cut(head)

    def _may_cut(self, head: str, line: bool = False) -> bool:
        """Whether `head` can stand alone; a line's end closes all markup but blocks."""
        behind = behind_blocks(head)
        if behind is None or not _SAYABLE.search(head) or _ENTITY.search(head):
            return False
        if _ENUMERATOR.search(self._before + head):
            return False
        if self._runs_on and self._runs_on.search(head) and not line:
            return False
        if line:
            return True
        if self._index == 0 and len(head.strip()) < FIRST_CHARS:
            if len(_WORD.findall(head)) < FIRST_WORDS:
                return False
        return len(head) >= LONGEST_CHARS or not _inside_markup(behind)

    def _splits(self, end: int, after: str) -> bool:
        """Whether a sentence ends at `end` of the piece, where `after` follows what is there."""
        head = self._before + self._piece[:end]
        text = _SPLITTABLE.sub(" ", head + self._piece[end:] + after)
        mark = _SENTENCE_END.search(head)
        assert mark is not None
        latest = len(text) - len(text[len(head) :].lstrip())
        boundaries = cast(Any, sentencex).get_sentence_boundaries(self._language.code, text)
        return any(mark.start(1) <= boundary["end_index"] <= latest for boundary in boundaries)

    def _cut(self, end: int, *, ends_sentence: bool) -> Clause:
        text, self._piece = self._piece[:end], self._piece[end:]
        self._before = "" if ends_sentence else (self._before + text)[-CONTEXT:]
        self._undecided = None
        return self._clause(text, last=False)

    def _clause(self, text: str, *, last: bool) -> Clause:
        said = normalize(text, self._language, before=self._past, code_said=self._code_said)
        self._past = (self._past + text)[-CONTEXT:]
        self._code_said = self._code_said or said.code
        end = self._start + len(text)
        total = self._tokens.total if last else self._tokens.at(end)
        # What is written behind the last word is silent, so it counts with that word.
        heard = [self._tokens.at(self._start + word.written) for word in said.words[:-1]] + [total]
        spans = tuple(
            Span(word.start, word.end, tokens)
            for word, tokens in zip(said.words, heard, strict=False)
        )
        clause = Clause(self._turn, self._index, text, said.text, spans, last)
        self._index += 1
        self._start = end
        return clause


@cache
def _going_on(spoken: SpeakingRules) -> re.Pattern[str]:
    """What never ends a clause, though a mark or a dash ends it."""
    numbered = alternatives(tuple(short for short in spoken.numbered if short.endswith(".")))
    days = alternatives(spoken.calendar)
    return re.compile(rf"(?:{spoken.runs_on}|\b(?:{numbered})|\b(?:{days})\.?\s+[-–])$")  # noqa: RUF001


def _inside_markup(head: str) -> bool:
    """Whether code, strong text, emphasis or a link is open at the end of `head`."""
    line = head[head.rfind("\n") + 1 :]
    outside = re.sub(r"`[^`]*`", "", line)
    if "`" in outside or outside.count("**") % 2 or outside.count("__") % 2:
        return True
    return bool(_OPENED.search(outside.replace("**", "").replace("__", "")))
