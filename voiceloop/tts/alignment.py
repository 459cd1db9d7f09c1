"""Times of the words of a clause, from the durations that a model gives to its symbols.

Symbols are letters or phonemes, with spaces between groups of them. Mostly a group is one spoken
word. But a phonemizer says some phrases as one group ("of the"), and a text cleaner splits some
words (at a hyphen). So words and groups are aligned first. Words that share a group share its time
in proportion to their letters. Where no alignment makes sense, as for a script without spaces, all
words share the clause in that way. This module knows neither audio nor models.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from voiceloop.types import Span, SpokenWord

MOST = 4
"""Most words that one group may say, and most groups that one word may become."""
UNEQUAL = 3.0
"""Cost, in symbols, of each word or group after the first in a block. It was found by trial: 99 in
100 words of English prose get the group in which espeak-ng says them."""

LETTERS_PER_S = 12.0
"""Letters that people say per second; rather few, so that no word counts as heard too soon."""


class Group(NamedTuple):
    """A group of symbols between spaces, without the punctuation marks around them."""

    first: int
    """Index of the group's first symbol."""
    last: int
    """Index of the symbol after the group's last one."""


class AlignedRange(NamedTuple):
    """A range of words and the range of groups that say them, as (start, end) without end."""

    words: tuple[int, int]
    groups: tuple[int, int]


def groups_of(symbols: Sequence[str]) -> list[Group]:
    """Find the groups in `symbols`, where an empty string is a symbol without a character.

    Marks inside a group, such as an apostrophe, belong to it. So do empty symbols at its edges.
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
    """Count the sounds in `symbols`: letters, without the marks of stress and length."""
    return sum(unicodedata.category(symbol) in ("Ll", "Lu", "Lo") for symbol in symbols if symbol)


def align(words: Sequence[float], groups: Sequence[float]) -> list[AlignedRange]:
    """Divide words and groups, given by their sizes, into matching blocks whose sizes differ least.

    A block has one word or one group. If that is impossible, one block holds everything.
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
    """Yield the positions (word, group) at which a block may begin that ends before `i` and `j`."""
    yield i - 1, j - 1
    for more in range(2, MOST + 1):
        yield i - more, j - 1
        yield i - 1, j - more


def word_times(
    spoken: str, spans: Sequence[Span], symbols: Sequence[str], ends: Sequence[float]
) -> tuple[SpokenWord, ...]:
    """Return when each span of `spoken` sounds; `ends` holds the sample at which each symbol ends.

    The words are in order and do not overlap. Without spans or groups the result is empty.
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
    """A list of words whose times are known. It reports each word once it has sounded."""

    def __init__(self, words: Sequence[SpokenWord]) -> None:
        """Take words that are timed in samples of the audio before its start is trimmed."""
        self._words = list(words)

    def ended_words(self, cut: int, sounded: int, *, last: bool) -> tuple[SpokenWord, ...]:
        """Return the words that have ended and were not returned before.

        `cut` samples were trimmed at the start, and `sounded` followed. With `last`, all other
        words are returned, and end at `sounded` at the latest.
        """
        ended = [word for word in self._words if last or word.end - cut <= sounded]
        self._words = self._words[len(ended) :]

        def moved(at: int) -> int:
            return min(max(0, at - cut), sounded)

        return tuple(SpokenWord(moved(word.start), moved(word.end), word.span) for word in ended)


class PacedWords:
    """A list of words without times, which are estimated from the pace at which people say letters.

    While a clause sounds, its length is not known, so the times are a guess. At its end the
    remaining words share the remaining sound in proportion to their letters.
    """

    def __init__(self, spoken: str, spans: Sequence[Span], rate: int, speed: float) -> None:
        """Set the pace to `LETTERS_PER_S` times `speed`, with `rate` samples per second."""
        self._letters = _letters(spoken, spans)
        self._pace = rate / (LETTERS_PER_S * speed)
        self._returned = 0
        self._end = 0
        self._sounded = 0

    def ended_words(self, cut: int, sounded: int, *, last: bool) -> tuple[SpokenWord, ...]:
        """Return the words that have ended by `sounded` and were not returned before; with `last`,
        all others. Times start after the trimmed samples, so `cut` is not used."""
        del cut
        waiting = self._letters[self._returned :]
        base, pace = self._end, self._pace
        if last:
            base = max(base, self._sounded)  # other words have not ended before
            pace = (sounded - base) / max(1, sum(waiting))
        ends = [base + round(pace * letters) for letters in accumulate(waiting)]
        words = list[SpokenWord]()
        for end in ends:
            if last or end <= sounded:
                words.append(SpokenWord(self._end, end, self._returned + len(words)))
                self._end = end
        self._returned += len(words)
        self._sounded = sounded
        return tuple(words)


def _letters(spoken: str, spans: Sequence[Span]) -> list[int]:
    """Count the letters and digits in each span, at least 1 for each."""
    return [max(1, sum(map(str.isalnum, spoken[span.start : span.end]))) for span in spans]
