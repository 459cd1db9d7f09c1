"""When the words of a clause sound, read from how long a model speaks each of its symbols.

A model reads letters or phonemes, with spaces between groups of them, and tells the length of each.
Mostly a group is a spoken word. But a phonemizer says some phrases as one group ("of the"), and a
cleaner parts some words (at a hyphen), so words and groups are aligned first; words that share a
group share its time by their letters. Where no alignment makes sense, as for a script without
spaces, all words share the clause in that way. This module knows neither audio nor models.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from voiceloop.types import Span, SpokenWord

MOST = 4
"""Words said as one group, or groups that one word becomes, at the most."""
UNEQUAL = 3.0
"""Cost, in symbols, of each word or group beyond one for one. Found by trial: 99 in 100 words of
English prose get the group that espeak-ng says them in."""

LETTERS_PER_S = 12.0
"""How fast people say letters; rather slow, so that a word is not taken for heard too soon."""


class Group(NamedTuple):
    """Symbols between spaces, without the marks around them."""

    first: int
    """Index of its first symbol."""
    last: int
    """Index of the symbol after its last."""


class AlignedRange(NamedTuple):
    """Words and the groups that say them; both stand for a range."""

    words: tuple[int, int]
    groups: tuple[int, int]


def groups_of(symbols: Sequence[str]) -> list[Group]:
    """The groups among `symbols`, of which an empty one stands for no character.

    Marks within a group belong to it (an apostrophe); so does an empty symbol at its edge.
    """
    found, begin = list[Group](), 0
    for end in [i for i, symbol in enumerate(symbols) if symbol.isspace()] + [len(symbols)]:
        said = [i for i in range(begin, end) if symbols[i] and not _is_mark(symbols[i])]
        if said:
            first, last = said[0], said[-1] + 1
            while first > begin and not symbols[first - 1]:
                first -= 1
            while last < end and not symbols[last]:
                last += 1
            found.append(Group(first, last))
        begin = end + 1
    return found


def _is_mark(symbol: str) -> bool:
    return unicodedata.category(symbol).startswith("P")


def _size(symbols: Sequence[str]) -> int:
    """How many sounds `symbols` stand for, without the marks of stress and length."""
    return sum(unicodedata.category(symbol) in ("Ll", "Lu", "Lo") for symbol in symbols if symbol)


def align(words: Sequence[float], groups: Sequence[float]) -> list[AlignedRange]:
    """Join words and groups, given by their sizes, into the blocks that differ least in size.

    A block has one word or one group, or else is all there is.
    """
    scale = sum(groups) / sum(words)
    before_word = [scale * size for size in accumulate(words, initial=0.0)]
    before_group = list(accumulate(groups, initial=0.0))
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for i in range(1, len(words) + 1):
        for j in range(1, len(groups) + 1):
            ways = [
                (
                    best[a, b][0]
                    + abs(before_word[i] - before_word[a] - before_group[j] + before_group[b])
                    + UNEQUAL * (i - a + j - b - 2),
                    (a, b),
                )
                for a, b in _origins(i, j)
                if (a, b) in best
            ]
            if ways:
                best[i, j] = min(ways)
    at = len(words), len(groups)
    if at not in best:
        return [AlignedRange((0, at[0]), (0, at[1]))]
    blocks = list[AlignedRange]()
    while at != (0, 0):
        (a, b), (i, j) = best[at][1], at
        blocks.append(AlignedRange((a, i), (b, j)))
        at = a, b
    return blocks[::-1]


def _origins(i: int, j: int) -> Iterator[tuple[int, int]]:
    """Where a block that ends before word `i` and group `j` may begin."""
    yield i - 1, j - 1
    for more in range(2, MOST + 1):
        yield i - more, j - 1
        yield i - 1, j - more


def word_times(
    spoken: str, spans: Sequence[Span], symbols: Sequence[str], ends: Sequence[float]
) -> tuple[SpokenWord, ...]:
    """When each span of `spoken` sounds; `ends` are the samples at which each symbol ends.

    The words are in order and do not overlap. Nothing where `spans` or the groups are none.
    """
    said = groups_of(symbols)
    if not spans or not said:
        return ()
    letters = _letters(spoken, spans)
    sizes = [max(1, _size(symbols[group.first : group.last])) for group in said]
    times = list[SpokenWord]()
    for (a, b), (first, last) in align(letters, sizes):
        begin, end = said[first].first, said[last - 1].last
        start = ends[begin - 1] if begin else 0.0
        length = ends[end - 1] - start
        shares = list(accumulate(letters[a:b], initial=0))
        edges = [round(start + length * share / shares[-1]) for share in shares]
        times += [SpokenWord(edges[i], edges[i + 1], a + i) for i in range(b - a)]
    return tuple(times)


class TimedWords:
    """Tells words of which the times are known, each once it has sounded."""

    def __init__(self, words: Sequence[SpokenWord]) -> None:
        """`words` are timed in samples before any are cut in front."""
        self._words = list(words)

    def told(self, cut: int, sounded: int, *, last: bool) -> tuple[SpokenWord, ...]:
        """Words that end within the first `sounded` samples, where `cut` are gone in front.

        With `last` none sounds from there on, so the rest end there.
        """
        ended = [word for word in self._words if last or word.end - cut <= sounded]
        self._words = self._words[len(ended) :]

        def moved(at: int) -> int:
            return min(max(0, at - cut), sounded)

        return tuple(SpokenWord(moved(word.start), moved(word.end), word.span) for word in ended)


class PacedWords:
    """Tells words of which a model tells nothing, by the pace at which people say letters.

    While a clause sounds its length is not known, so this is a guess; in the end, what is left of
    the sound is shared by the letters that are left.
    """

    def __init__(self, spoken: str, spans: Sequence[Span], rate: int, speed: float) -> None:
        """`rate` is in hertz; at a `speed` of 1 people say `LETTERS_PER_S`."""
        self._letters = _letters(spoken, spans)
        self._pace = rate / (LETTERS_PER_S * speed)
        self._told = 0
        self._end = 0
        self._sounded = 0

    def told(self, cut: int, sounded: int, *, last: bool) -> tuple[SpokenWord, ...]:
        """See `TimedWords`."""
        del cut
        waiting = self._letters[self._told :]
        base, pace = self._end, self._pace
        if last:
            base = max(base, self._sounded)  # what has not been told has not ended
            pace = (sounded - base) / max(1, sum(waiting))
        ends = [base + round(pace * letters) for letters in accumulate(waiting)]
        words = list[SpokenWord]()
        for end in ends:
            if last or end <= sounded:
                words.append(SpokenWord(self._end, end, self._told + len(words)))
                self._end = end
        self._told += len(words)
        self._sounded = sounded
        return tuple(words)


def _letters(spoken: str, spans: Sequence[Span]) -> list[int]:
    """How many letters each span has; one at least."""
    return [max(1, sum(map(str.isalnum, spoken[span.start : span.end]))) for span in spans]
