"""Turns a clause into the text that synthesizers read, and its samples into chunks.

Synthesizers add some silence at the beginning and the end of a clause. It is cut to a few
milliseconds here, so that a reply sounds at once. The pause between two clauses depends only on the
mark between them and on the speed. Each word is reported with the piece of sound in which it ends.
This module does not know how samples are made.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from voiceloop.audio.frames import fade_in, fade_out, samples, silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.engines import Steps
from voiceloop.types import Clause, Pcm, Span, SpeechChunk, SpokenWord

# espeak-ng reads commands after control characters, and no engine takes half a surrogate pair.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def sayable(clause: Clause) -> str:
    """Return the text of a clause for a synthesizer; empty if it has no letters or digits.

    Characters keep their positions. If the reply goes on after a clause without a mark, the clause
    gets a comma. Otherwise it would sound like the end of a sentence.
    """
    text = _UNSAFE.sub(" ", clause.spoken).rstrip()
    if not any(map(str.isalnum, text)):
        return ""
    return text if clause.last or text[-1] in PAUSE_MS else f"{text},"


def fitting(text: str, encoded: Callable[[str], list[int] | None]) -> list[list[int]]:
    """Return the token ids of `text`, in parts that a model can say at once. `encoded` returns the
    ids of a part, empty if it has nothing to say; None if the part is too long. It is halved then.
    Parts with nothing to say are left out."""
    ids = encoded(text) if text else []
    if ids is None and len(text) > 1:
        at = _middle(text)
        return fitting(text[:at].strip(), encoded) + fitting(text[at:].strip(), encoded)
    return [ids] if ids else []


def _middle(text: str) -> int:
    """Return the index at which to split `text`. It is near the middle, after a mark if possible,
    otherwise after a word."""
    middle = len(text) // 2
    gaps = [i for i, char in enumerate(text) if char.isspace() and 0 < i]
    marks = [i for i in gaps if text[i - 1] in PAUSE_MS and abs(i - middle) < middle / 2]
    return min(marks or gaps or [middle], key=lambda i: abs(i - middle))


LEAD_MS, TAIL_MS = 3, 10
"""Quiet audio kept before the first audible sample and after the last one, in ms."""
FADE_IN_MS, FADE_OUT_MS = 2, 8
PAUSE_MS = {",": 150, ";": 200, ":": 200, ".": 300, "!": 300, "?": 300}
"""Silence after a clause in ms, by its last mark. Without a mark there is none."""


class Trimmer:
    """A trimmer of one clause while it is synthesised. Call `feed` with the pieces in order, then
    `finish` once.

    The joined output does not depend on how the audio is divided into pieces. The trimmer holds
    back the quiet audio at the end so far, because the clause may end there. It also holds back the
    last `FADE_OUT_MS` of the sound before that, because the fade-out may change it.
    """

    def __init__(self, rate: int) -> None:
        self.cut = 0
        """Samples trimmed at the start. The number is final once any sample has been returned."""
        self._rate = rate
        self._rise, self._fall = samples(FADE_IN_MS, rate), samples(FADE_OUT_MS, rate)
        self._begun = False
        self._held = silence(0)

    def feed(self, pcm: Pcm) -> Pcm:
        """Add the clause's next samples, and return the samples that can no longer change."""
        held = np.concatenate((self._held, pcm))
        loud = np.flatnonzero(np.abs(held) >= AUDIBLE)
        if not self._begun:
            before = int(loud[0]) if len(loud) else len(held)
            dropped = max(0, before - samples(LEAD_MS, self._rate))
            held, loud = held[dropped:], loud - dropped
            self.cut += dropped
        sure = int(loud[-1]) + 1 - self._fall if len(loud) else 0
        least = 0 if self._begun else self._rise  # the first output holds the whole fade-in
        sure = sure if sure >= least else 0
        self._held = held[sure:]
        return self._risen(held[:sure])

    def finish(self) -> Pcm:
        """Return the rest of the clause, without the silence at its end."""
        loud = np.flatnonzero(np.abs(self._held) >= AUDIBLE)
        end = int(loud[-1]) + 1 + samples(TAIL_MS, self._rate) if len(loud) else 0
        rest, self._held = self._held[:end], silence(0)
        return fade_out(self._risen(rest), self._fall)

    def _risen(self, pcm: Pcm) -> Pcm:
        """Return `pcm`, faded in if it begins the clause."""
        if self._begun or not len(pcm):
            return pcm
        self._begun = True
        return fade_in(pcm, self._rise)


def trim(pcm: Pcm, rate: int) -> tuple[Pcm, int]:
    """Return `pcm` faded and without the silence around it, and the samples cut at its start."""
    trimmer = Trimmer(rate)
    trimmed = np.concatenate((trimmer.feed(pcm), trimmer.finish()))
    return trimmed, trimmer.cut if len(trimmed) else 0


def pause(clause: Clause, rate: int, speed: float) -> Pcm:
    """Return the silence that follows a clause; none after the last clause of a reply."""
    if clause.last:
        return silence(0)
    return silence(samples(PAUSE_MS.get(clause.spoken[-1:], 0) / speed, rate))


FIRST, LARGEST = 20, 160
"""Frames in the first window, and the size to which windows grow. Each window has twice the frames
of the window before it, until `LARGEST` is reached. A short window sounds sooner. A long window
needs less work for its context, but takes a longer step."""


def windows(
    frames: int, *, first: int = FIRST, largest: int = LARGEST
) -> Iterator[tuple[int, int]]:
    """Divide `frames` into growing windows (start, end). The last window may have up to 1.5 times
    the usual size, so that no short window follows."""
    start, size = 0, first
    while start < frames:
        end = start + size if frames - start >= 1.5 * size else frames
        yield start, end
        start, size = end, min(2 * size, largest)


# ---- when words sound
#
# When the words of a clause sound is computed from the durations that a model gives to its symbols.
#
# Symbols are letters or phonemes, and spaces divide them into groups. Mostly a group is one spoken
# word. But a phonemizer says some phrases as one group ("of the"), and a text cleaner splits some
# words (at a hyphen). So words and groups are aligned first. Words in one group share the group's
# time in proportion to their letters. Where words and groups cannot be aligned, as in a script
# without spaces, all words share the time of the whole clause in proportion to their letters. For a
# model that gives no durations, the times are estimated.

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


def nothing(clause: Clause, rate: int) -> SpeechChunk:
    """Return the only chunk of a clause with nothing to say. Its words are over at once."""
    words = tuple(SpokenWord(0, 0, span) for span in range(len(clause.spans)))
    return SpeechChunk(clause.turn, clause, silence(0), rate, 0, words, last=True)


def deliver(
    clause: Clause,
    pieces: Iterator[tuple[Pcm, bool]],
    words: TimedWords | PacedWords,
    rate: int,
    speed: float,
) -> Steps[SpeechChunk]:
    """Yield the chunks of a clause. Each of `pieces` takes one step, and has a flag that is true
    for the last piece. A step that completes no sound yields None."""
    trimmer, sounded = Trimmer(rate), 0
    for made, last in pieces:
        pcm = trimmer.feed(made)
        if last:
            pcm = np.concatenate((pcm, trimmer.finish()))
        if not (last or len(pcm)):  # its words are reported with the next piece
            yield None
            continue
        first, sounded = sounded, sounded + len(pcm)
        ended = words.ended_words(trimmer.cut, sounded, last=last)
        if last and sounded:
            pcm = np.concatenate((pcm, pause(clause, rate, speed)))
        yield SpeechChunk(clause.turn, clause, pcm, rate, first, ended, last)
