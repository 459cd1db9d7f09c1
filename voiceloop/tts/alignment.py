"""Computes when the words of a clause sound, from the durations that a model gives to its symbols.

Symbols are letters or phonemes, and spaces divide them into groups. Mostly a group is one spoken
word. But a phonemizer says some phrases as one group ("of the"), and a text cleaner splits some
words (at a hyphen). So words and groups are aligned first. Words in one group share the group's
time in proportion to their letters. Where words and groups cannot be aligned, as in a script
without spaces, all words share the time of the whole clause in proportion to their letters. For a
model that gives no durations, the times are estimated. This module knows neither audio nor models.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from voiceloop.types import Span, SpokenWord

MOST = 4
"""Maximum number of words in one group, and maximum number of groups for one word."""
UNEQUAL = 3.0
"""Cost of each word or group after the first in a block of an alignment, in symbols. The value was
found by trial. With it, 99 in 100 words of English prose get the group in which espeak-ng says
them."""

LETTERS_PER_S = 12.0
"""Estimated pace of speech, in letters per second. It is rather slow, so that no word counts as
heard too soon."""


class Group(NamedTuple):
    """A group of symbols between spaces, without the punctuation marks around it."""

    first: int
    """Index of the group's first symbol."""
    last: int
    """Index of the symbol after the group's last one."""


class AlignedRange(NamedTuple):
    """A range of words, and the range of groups in which they are said. Each range is (start, end);
    `end` is not included."""

    words: tuple[int, int]
    groups: tuple[int, int]


def groups_of(symbols: Sequence[str]) -> list[Group]:
    """Return the groups in `symbols`, where an empty string stands for a symbol without a
    character.

    A group includes the punctuation marks inside it, e.g. an apostrophe, and the empty symbols next
    to it.
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
    """Align words with groups, both given by their sizes, and return the matching blocks in order.

    A block has one word and up to `MOST` groups, or one group and up to `MOST` words. The blocks
    minimise the sum of their differences in size, plus `UNEQUAL` for each word or group after the
    first in a block. If no such division exists, the result is a single block.
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
    """Yield the positions (word, group) at which a block may begin if it ends before word `i` and
    group `j`."""
    yield i - 1, j - 1
    for more in range(2, MOST + 1):
        yield i - more, j - 1
        yield i - 1, j - more


def word_times(
    spoken: str, spans: Sequence[Span], symbols: Sequence[str], ends: Sequence[float]
) -> tuple[SpokenWord, ...]:
    """Return when each of `spans` in the text `spoken` sounds. `ends` holds the sample at which
    each of `symbols` ends.

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
    """A list of words with known times. It reports each word once, when the word has sounded."""

    def __init__(self, words: Sequence[SpokenWord]) -> None:
        """Take words whose times count samples from the start of the untrimmed audio."""
        self._words = list(words)

    def ended_words(self, cut: int, sounded: int, *, last: bool) -> tuple[SpokenWord, ...]:
        """Return the words that have ended by now, without those of earlier calls.

        `cut` samples were trimmed from the start of the clause, and `sounded` samples after them
        have been delivered. With `last`, all remaining words are returned. Times count from the
        trimmed start and are at most `sounded`.
        """
        ended = [word for word in self._words if last or word.end - cut <= sounded]
        self._words = self._words[len(ended) :]

        def moved(at: int) -> int:
            return min(max(0, at - cut), sounded)

        return tuple(SpokenWord(moved(word.start), moved(word.end), word.span) for word in ended)


class PacedWords:
    """A list of words whose times are estimated from a pace in letters per second.

    The length of a clause is not known while it is synthesised, so the times are a guess. At the
    end of the clause, the remaining words share the remaining sound in proportion to their letters.
    """

    def __init__(self, spoken: str, spans: Sequence[Span], rate: int, speed: float) -> None:
        """Set the pace to `LETTERS_PER_S` times `speed`. `rate` is the sample rate in hertz."""
        self._letters = _letters(spoken, spans)
        self._pace = rate / (LETTERS_PER_S * speed)
        self._returned = 0
        self._end = 0
        self._sounded = 0

    def ended_words(self, cut: int, sounded: int, *, last: bool) -> tuple[SpokenWord, ...]:
        """Return the words that have probably ended by sample `sounded`, without those of earlier
        calls. With `last`, return all remaining words. Times count from the trimmed start, so `cut`
        is not used."""
        del cut
        waiting = self._letters[self._returned :]
        base, pace = self._end, self._pace
        if last:
            base = max(base, self._sounded)  # no remaining word had ended at the last call
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
    """Return the number of letters and digits in each span, but at least 1."""
    return [max(1, sum(map(str.isalnum, spoken[span.start : span.end]))) for span in spans]
