"""Cuts a reply into clauses while it is being written.

The first clause is cut early, because the user waits for it. The next clause is the rest of its
sentence. After that, a clause is mostly one sentence. If text comes slowly, the first clause is as
short as it may be, and the next ones end before the sound of the earlier ones does. Text is read
character by character, so the clauses do not depend on the pieces in which the text arrives. A cut
is made once no continuation of the text can make it wrong. After a comma, this is known at the next
space. At a possible end of a sentence, it is known at the next space if the sentence splitter sees
an end before each of `PROBES`; otherwise it is known at the space after the next word. A line break
cuts at once. This module does not know how a clause is spoken. How fast text comes, it is told.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, cast
from unicodedata import category

import sentencex  # pyright: ignore[reportMissingTypeStubs]

from voiceloop.languages import Language
from voiceloop.languages.spoken import SpeakingRules, alternatives
from voiceloop.tts.markup import behind_blocks
from voiceloop.tts.normalize import normalize
from voiceloop.tts.pace import FIRST_CHARS, FIRST_WORDS, FORCED_WORDS, Hurry, Tempo
from voiceloop.types import Clause, Span, TokenBurst

FORCED_ANYWHERE = 2
"""With this many words more than `FORCED_WORDS`, the first clause ends between any two words. From
`FORCED_WORDS` on, it ends before a short word that follows a longer word, because such a word
mostly begins a phrase. If text comes slowly, fewer words are enough, and then it also ends after a
word that is no short one, because an article or a preposition belongs to what follows."""
LONG_CHARS, LONGEST_CHARS = 200, 300
"""Lengths in characters from which a clause after the first ends within a sentence. From
`LONG_CHARS` on, it ends at the next mark such as a comma. From `LONGEST_CHARS` on, it ends after
the next word."""
MOST_CHARS = 600
"""Length in characters from which a clause ends before any space, unless it ends with an open block
of code. So the work for one more token is bounded."""
YOUNG_CHARS, YOUNGEST = 50, 0.25
"""While all earlier clauses together have fewer than `YOUNG_CHARS` characters, `LONG_CHARS` and
`LONGEST_CHARS` shrink in proportion, but not below the share `YOUNGEST`. Otherwise a first clause
like "Dear Grandmother," would be over before the long sentence behind it is written."""
CONTEXT = 200
"""Maximum number of characters of earlier clauses that are kept. The sentence splitter gets those
of the same sentence. The spoken form of the next clause depends on those of any sentence."""
PROBES = ("The ", "the ", "Qx ", "5 ")
"""Words that are tried after a possible end of a sentence: the beginning of another sentence, a
continuation of the same sentence, a name, a number."""

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
_LONG_WORD = re.compile(r"[^\W\d_]{4}$")
_NEW_PHRASE = re.compile(r"(?<=[^\W\d_]{5})\s+[^\W\d_]{1,4}$")
_OPENED = re.compile(
    r"\[[^\]\n]*$|\]\([^)\s]*$"  # a link
    r"|(?<![^\W_])(\*|_)(?=[^\s*_])(?:(?!\1)[^\n])*$"  # emphasis
    r"|(?<![\w$\\])\$(?=[A-Za-z\\(])[^$\n]{0,60}$"  # a formula
)
# Characters that the splitter cannot read, or takes for the end of a paragraph.
_SPLITTABLE = re.compile("[\ud800-\udfff\r\n]")


def cut(text: str, language: Language) -> list[Clause]:
    """Cut a complete text into clauses, as the text of a reply is cut."""
    cutter = ClauseCutter(0, language)
    return cutter.feed(TokenBurst(0, (0,), text)) + cutter.flush()


class ClauseCutter:
    """A cutter for one reply. Call `feed` with each burst in order, then `flush` once.

    The texts of the clauses, joined, are exactly the reply's text. A clause ends after its mark, so
    the space that follows begins the next clause. A line break belongs to the clause before it. The
    *piece* is the text that has not been cut off yet.
    """

    def __init__(self, turn: int, language: Language, tempo: Callable[[], Tempo] = Tempo) -> None:
        """Prepare to cut the reply of `turn`, which will be spoken in `language`. `tempo` returns
        how fast it is written and spoken."""
        self._turn = turn
        self._language = language
        self._hurry = Hurry(tempo)
        self._index = 0
        self._code_said = False
        """True once a clause of this reply has mentioned code. Later code is not mentioned."""
        self._piece = ""
        self._before = ""
        """The part of the current sentence that is in earlier clauses."""
        self._context = ""
        """The end of the text of all earlier clauses, at most `CONTEXT` characters."""
        self._undecided: int | None = None
        """Index in the piece at which a sentence may have ended; the next word decides. None if
        there is no such index."""
        self._open_until = 0
        """Length of the piece below which a long block in it is taken to be open."""
        self._start = 0
        """Number of the reply's characters before the piece."""
        self._tokens = TokenCount()

    def feed(self, burst: TokenBurst) -> list[Clause]:
        """Add the reply's next tokens and return the clauses that they complete."""
        self._tokens.add(burst)
        return [clause for char in burst.text for clause in self._push(char)]

    def cut_off(self) -> list[Clause]:
        """Return the text so far as a clause, because what follows may be long in coming. Return
        nothing if there is nothing to say, or if the text ends within markup."""
        behind = behind_blocks(self._piece)
        if behind is None or not _SAYABLE.search(self._piece) or _inside_markup(behind):
            return []
        return [self._cut(len(self._piece), ends_sentence=True)]

    def flush(self) -> list[Clause]:
        """Return the remaining clauses. The last one always exists, even if it is empty."""
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
        if len(self._piece) < self._open_until:
            self._piece += char
            return
        if len(self._piece) >= MOST_CHARS and char.isspace():
            if behind_blocks(self._piece) is not None:
                yield self._cut(len(self._piece), ends_sentence=False)
            else:  # to look for its end at each space would be quadratic work
                self._open_until = len(self._piece) * 17 // 16
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
        """Handle a space after the piece. If the piece ends with a mark, cut it after the mark. A
        long first clause without a mark is cut before its last word. If the sentence may either end
        or go on here, the next word decides."""
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
            if len(_WORD.findall(head)) >= self._hurry.forced_words and self._may_cut(head):
                yield self._cut(len(head), ends_sentence=False)

    def _ends_before(self, char: str, spaced: bool) -> bool:
        """Return whether to cut the piece before `char`, the next character."""
        head = self._piece.rstrip()
        if not spaced:
            return head.endswith("—") and char.isalpha() and self._at_mark(head)
        # In "May 5, 2024" the comma belongs to the date, in "5 kg - 10 kg" the dash to the range.
        if _NUMBER_MARK.search(head):
            amount = char.isdigit() or (head[-1] in "-–" and category(char) == "Sc")  # noqa: RUF001
            return not amount and self._at_mark(head)
        if not char.isalpha() or not _LAST_WORD.search(head) or not self._may_cut(head):
            return False
        words = len(_WORD.findall(head))
        if self._index:
            late = _long_enough(head) and self._slack_words < 1
            return late or len(head) >= LONGEST_CHARS * self._shrinking
        forced = self._hurry.forced_words
        ends = forced < FORCED_WORDS and bool(_LONG_WORD.search(head))
        return words >= forced + (0 if ends else FORCED_ANYWHERE)

    @property
    def _slack_words(self) -> float:
        """Number of words for which the sound of all earlier clauses lasts."""
        return self._hurry.slack_words(self._start, self._written)

    @property
    def _written(self) -> int:
        """Number of the reply's tokens up to the end of the piece."""
        return self._tokens.at(self._start + len(self._piece))

    @property
    def _shrinking(self) -> float:
        """Factor of the limits `LONG_CHARS` and `LONGEST_CHARS` for this clause, from `YOUNGEST` to
        1."""
        return min(max(self._start / YOUNG_CHARS, YOUNGEST), 1.0)

    def _at_mark(self, head: str) -> bool:
        allowed = self._index == 0 or len(head) >= LONG_CHARS * self._shrinking
        allowed = allowed or (_long_enough(head) and self._slack_words < FORCED_WORDS)
        return allowed and bool(_CLAUSE_END.search(head)) and self._may_cut(head)

    def _may_cut(self, head: str, line: bool = False) -> bool:
        """Return whether `head` may be a clause. `line` is true at a line break, which closes
        inline markup."""
        behind = behind_blocks(head)
        if behind is None or not _SAYABLE.search(head) or _ENTITY.search(head):
            return False
        if _ENUMERATOR.search(self._before + head):
            return False
        spoken = self._language.spoken
        if spoken and _never_ending(spoken).search(head) and not line:
            return False
        if line:
            return True
        if self._index == 0 and not (_long_enough(head) or self._opens(head)):
            return False
        return len(head) >= LONGEST_CHARS or not _inside_markup(behind)

    def _opens(self, head: str) -> bool:
        """Return whether `head` is an opening after which people pause, and text comes so slowly
        that it is said alone."""
        spoken = self._language.spoken
        hurried = self._hurry.forced_words < FORCED_WORDS
        return bool(hurried and spoken and _openings(spoken).fullmatch(head.strip()))

    def _splits(self, end: int, after: str) -> bool:
        """Return whether a sentence ends at `end` in the piece, if `after` follows."""
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
        self._open_until = 0
        return self._clause(text, last=False)

    def _clause(self, text: str, *, last: bool) -> Clause:
        if not self._index:
            self._hurry.since = self._tokens.at(self._start + len(text) + len(self._piece))
        said = normalize(text, self._language, before=self._context, code_said=self._code_said)
        self._context = (self._context + text)[-CONTEXT:]
        self._code_said = self._code_said or said.code
        end = self._start + len(text)
        total = self._tokens.total if last else self._tokens.at(end)
        # Text after the last word is silent, so its tokens count with that word.
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
def _openings(spoken: SpeakingRules) -> re.Pattern[str]:
    """Compile a pattern of a whole opening, with the mark behind it."""
    return re.compile(rf"(?:{alternatives(spoken.openings)})[,.!]", re.IGNORECASE)


@cache
def _never_ending(spoken: SpeakingRules) -> re.Pattern[str]:
    """Compile a pattern. If a text matches it at the end, a clause never ends there, even at a mark
    or a dash."""
    numbered = alternatives(tuple(short for short in spoken.numbered if short.endswith(".")))
    days = alternatives(spoken.calendar)
    names = spoken.calendar.items()
    short = alternatives(tuple(day for day, name in names if 1 < len(day) < 4 and day != name))
    named = rf"\b(?:{days})\.?\s+[-–]|\b(?:{short})(?:\.?,|\.(?:\s+{spoken.to})?)"  # noqa: RUF001
    books = "|".join(name for name in spoken.books if name.isalpha())
    before = rf"\b\d!|(?<!\d )\b(?:{alternatives(spoken.dated)})\.|\b(?:{books})\."
    return re.compile(rf"(?:{spoken.runs_on}|\b(?:{numbered})|{named}|{before})$")


def _long_enough(head: str) -> bool:
    """Return whether `head` sounds for as long as the next clause needs."""
    return len(head.strip()) >= FIRST_CHARS or len(_WORD.findall(head)) >= FIRST_WORDS


def _inside_markup(head: str) -> bool:
    """Return whether inline markup is open at the end of `head`: code, strong text, emphasis, a
    link or a formula."""
    line = head[head.rfind("\n") + 1 :]
    outside = re.sub(r"`[^`]*`", "", line)
    if "`" in outside or outside.count("**") % 2 or outside.count("__") % 2:
        return True
    return bool(_OPENED.search(outside.replace("**", "").replace("__", "")))


class TokenCount:
    """A counter for the tokens of one reply as it grows."""

    def __init__(self) -> None:
        self.total = 0
        self._length = 0
        """Number of characters of the text so far."""
        self._ends: list[int] = []
        """For each token that is not only space, the number of characters up to its end."""
        self._counts: list[int] = []
        """For each entry of `_ends`, the number of tokens up to it."""

    def add(self, burst: TokenBurst) -> None:
        """Add the reply's next tokens.

        A token counts as heard with its last character that is not space, so ".\\n" counts with its
        sentence. A token of space alone counts with the token after it.
        """
        size, number = len(burst.text), len(burst.ids)
        ends = burst.ends or [size * (i + 1) // number for i in range(number)]
        begin = 0
        for end in ends:
            self.total += 1
            solid = burst.text[begin:end].rstrip()
            if solid:
                self._ends.append(self._length + begin + len(solid))
                self._counts.append(self.total)
            begin = end
        self._length += size

    def at(self, end: int) -> int:
        """Return how many whole tokens have been heard with the reply's first `end` characters."""
        whole = bisect_right(self._ends, end)
        return self._counts[whole - 1] if whole else 0
