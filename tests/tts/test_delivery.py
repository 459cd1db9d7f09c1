"""When the words of a clause sound, and what surrounds its sound."""

# ruff: noqa: RUF001

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sounds import chunks, sizes
from voiceloop.audio.frames import silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.tts.delivery import (
    FADE_IN_MS,
    FADE_OUT_MS,
    LEAD_MS,
    TAIL_MS,
    PacedWords,
    TimedWords,
    Trimmer,
    align,
    fitting,
    groups_of,
    pause,
    sayable,
    trim,
    word_times,
)
from voiceloop.types import Clause, Pcm, Span, SpokenWord

pytestmark = pytest.mark.pure

counts = st.lists(st.integers(1, 12), min_size=1, max_size=14)


def spans(spoken: str) -> list[Span]:
    """One for each word between spaces."""
    found, at = list[Span](), 0
    for word in spoken.split():
        at = spoken.index(word, at)
        found.append(Span(at, at + len(word), len(found) + 1))
        at += len(word)
    return found


def said(symbols: str) -> list[str]:
    """The groups of `symbols`, in which `_` stands for no character."""
    listed = ["" if symbol == "_" else symbol for symbol in symbols]
    return [symbols[group.first : group.last] for group in groups_of(listed)]


def timed(spoken: str, symbols: str) -> list[tuple[str, int, int]]:
    """Each word with its first and last sample, where every symbol takes ten."""
    listed = ["" if symbol == "_" else symbol for symbol in symbols]
    ends = [10.0 * (i + 1) for i in range(len(listed))]
    found = spans(spoken)
    return [
        (spoken[found[word.span].start : found[word.span].end], word.start, word.end)
        for word in word_times(spoken, found, listed, ends)
    ]


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        ("hello there", ["hello", "there"]),
        ("  hello,  there! ", ["hello", "there"]),
        ("_h_i_ _a_,_", ["_h_i_", "_a_"]),  # what stands between symbols belongs to the word
        ("don't (stop)", ["don't", "stop"]),
        ("həlˈoʊ, wˈɜːld.", ["həlˈoʊ", "wˈɜːld"]),  # a stress mark is no mark
        ("well-known", ["well-known"]),
        ("... !", []),
        ("_ _", []),
        ("", []),
    ],
)
def test_groups_are_what_stands_between_spaces_without_marks(
    symbols: str, expected: list[str]
) -> None:
    assert said(symbols) == expected


@given(counts, counts)
def test_blocks_hold_every_word_and_every_group_once_in_order(
    words: list[int], groups: list[int]
) -> None:
    blocks = align(words, groups)
    assert [i for block in blocks for i in range(*block.words)] == list(range(len(words)))
    assert [i for block in blocks for i in range(*block.groups)] == list(range(len(groups)))
    for (a, b), (first, last) in blocks:
        assert a < b and first < last
        assert len(blocks) == 1 or b - a == 1 or last - first == 1


@given(counts)
def test_words_that_are_said_as_they_are_written_are_one_for_one(words: list[int]) -> None:
    expected = [((i, i + 1), (i, i + 1)) for i in range(len(words))]
    assert align(words, words) == expected
    assert align(words, [3 * size for size in words]) == expected


@pytest.mark.parametrize(
    ("words", "groups", "expected"),
    [
        ("all of the blue sky", "ɔl ʌvðə blu skaɪ", [1, 2, 1, 1]),
        ("he went to the house in the woods", "hi wɛnt təðə haʊs ɪnðə wʊdz", [1, 1, 2, 1, 2, 1]),
        ("a well-known word", "ɐ wɛl noʊn wɜd", [1, -2, 1]),
        ("some of the well-known words", "sʌm ʌvðə wɛl noʊn wɜdz", [1, 2, -2, 1]),
        ("one two three four five six", "onetwothreefourfivesix", [6]),
        ("antidisestablishmentarianism", "an ti dis es ta blish ment", [-7]),
    ],
)
def test_phrases_and_parted_words_are_found(words: str, groups: str, expected: list[int]) -> None:
    """`expected`: words in each block, or its groups as a negative number."""
    blocks = align([len(word) for word in words.split()], [len(group) for group in groups.split()])
    assert [b - a if last - first == 1 else first - last for (a, b), (first, last) in blocks] == (
        expected
    )


def test_a_word_sounds_as_long_as_its_symbols() -> None:
    assert timed("hi, you.", "hi, you.") == [("hi,", 0, 20), ("you.", 40, 70)]
    assert timed("hi, you.", "_h_i_,_ _y_o_u_._") == [("hi,", 0, 50), ("you.", 80, 150)]


def test_words_of_one_group_share_its_time_by_their_letters() -> None:
    assert timed("a bee of the", "a bee ofthe") == [
        ("a", 0, 10), ("bee", 20, 50), ("of", 60, 80), ("the", 80, 110),
    ]  # fmt: skip
    assert timed("one two", "いちに") == [("one", 0, 15), ("two", 15, 30)]


def test_a_parted_word_sounds_from_its_first_part_to_its_last() -> None:
    assert timed("so well-known", "so well known") == [("so", 0, 20), ("well-known", 30, 130)]


def test_no_words_or_nothing_said_gives_no_times() -> None:
    assert timed("", "abc") == []
    assert timed("abc", "...") == []


@given(
    st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=10),
    st.text("abc .,'", min_size=1, max_size=50).filter(lambda text: any(map(str.isalpha, text))),
    st.lists(st.floats(0, 50), min_size=50, max_size=50),
)
def test_words_are_in_order_and_within_the_clause(
    words: list[str], symbols: str, lengths: list[float]
) -> None:
    spoken = " ".join(words)
    ends = list(accumulate(lengths))[: len(symbols)]
    times = word_times(spoken, spans(spoken), symbols, ends)
    assert [word.span for word in times] == list(range(len(words)))
    flat = [time for word in times for time in (word.start, word.end)]
    assert flat == sorted(flat)
    assert 0 <= flat[0] and flat[-1] <= round(ends[-1])


def test_words_of_known_times_are_told_once_they_have_sounded() -> None:
    words = TimedWords([SpokenWord(10, 20, 0), SpokenWord(25, 40, 1), SpokenWord(45, 99, 2)])
    assert words.ended_words(10, 9, last=False) == ()
    assert words.ended_words(10, 30, last=False) == (SpokenWord(0, 10, 0), SpokenWord(15, 30, 1))
    assert words.ended_words(10, 50, last=True) == (SpokenWord(35, 50, 2),)


def test_words_of_unknown_times_are_told_by_a_pace_and_share_the_rest() -> None:
    text = "some words at last"  # of 4, 5, 2 and 4 letters
    words = PacedWords(text, spans(text), rate=1200, speed=2.0)  # a letter is 50 samples
    assert words.ended_words(0, 199, last=False) == ()
    assert words.ended_words(0, 300, last=False) == (SpokenWord(0, 200, 0),)
    assert words.ended_words(0, 520, last=True) == (
        SpokenWord(200, 400, 1),
        SpokenWord(400, 440, 2),
        SpokenWord(440, 520, 3),
    )
    alone = PacedWords(text, spans(text), rate=1200, speed=1.0)
    assert [word.end for word in alone.ended_words(0, 150, last=True)] == [40, 90, 110, 150]
    assert PacedWords("", [], rate=1200, speed=1.0).ended_words(0, 100, last=True) == ()


@pytest.mark.parametrize(
    ("text", "last", "expected"),
    [
        ("so as I said", False, "so as I said,"),
        ("so as I said", True, "so as I said"),
        ("so it is.", False, "so it is."),
        ("a\x00b\ud800 ", True, "a b"),
        ("?! …", False, ""),
    ],
)
def test_a_clause_without_a_mark_goes_on_as_behind_a_comma(
    text: str, *, last: bool, expected: str
) -> None:
    assert sayable(Clause(1, 0, text, text, last=last)) == expected


@given(st.lists(st.text("abc,", min_size=1, max_size=9), min_size=1, max_size=30))
def test_a_text_that_is_too_long_is_said_in_parts_without_losing_a_word(words: list[str]) -> None:
    def encoded(text: str) -> list[int] | None:
        return None if len(text) > 20 else [*map(ord, text)]

    parts = ["".join(map(chr, ids)) for ids in fitting(" ".join(words), encoded)]
    assert " ".join(parts).split() == words


RATE = 8000
MS = RATE // 1000
LEVELS = (0.0, AUDIBLE / 2, -AUDIBLE, 0.5, -0.9)

stretches = st.lists(st.tuples(st.sampled_from(LEVELS), st.integers(1, 200)), max_size=8)


def audio(parts: list[tuple[float, int]]) -> Pcm:
    return np.concatenate(
        [silence(0), *(np.full(length, level, np.float32) for level, length in parts)]
    )


@given(stretches, sizes)
def test_the_pieces_make_no_difference(parts: list[tuple[float, int]], cuts: list[int]) -> None:
    pcm = audio(parts)
    whole, cut = trim(pcm, RATE)
    trimmer = Trimmer(RATE)
    pieces = [trimmer.feed(piece) for piece in chunks(pcm, cuts)]
    joined = np.concatenate((silence(0), *pieces, trimmer.finish()))
    assert np.array_equal(joined, whole)
    assert not len(whole) or trimmer.cut == cut


@given(stretches)
def test_what_is_kept_is_what_was_there_but_for_the_fades(parts: list[tuple[float, int]]) -> None:
    pcm = audio(parts)
    loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
    trimmed, cut = trim(pcm, RATE)
    if not len(loud):
        assert (len(trimmed), cut) == (0, 0)
        return
    start, end = max(0, loud[0] - LEAD_MS * MS), min(len(pcm), loud[-1] + 1 + TAIL_MS * MS)
    assert cut == start
    assert len(trimmed) == end - start
    inner = slice(FADE_IN_MS * MS, max(0, len(trimmed) - FADE_OUT_MS * MS))
    assert np.array_equal(trimmed[inner], pcm[start:end][inner])
    assert trimmed[0] == trimmed[-1] == 0


@given(stretches, sizes)
def test_sound_is_held_back_no_longer_than_the_fade(
    parts: list[tuple[float, int]], cuts: list[int]
) -> None:
    pcm = audio(parts)
    trimmer, given_, fed = Trimmer(RATE), 0, 0
    for piece in chunks(pcm, cuts):
        given_, fed = given_ + len(trimmer.feed(piece)), fed + len(piece)
        loud = np.flatnonzero(np.abs(pcm[:fed]) >= AUDIBLE)
        if len(loud) and loud[-1] - trimmer.cut >= (FADE_IN_MS + FADE_OUT_MS) * MS:
            assert given_ == loud[-1] + 1 - trimmer.cut - FADE_OUT_MS * MS


@pytest.mark.parametrize(("mark", "ms"), [(".", 300), (",", 150), ("?", 300), (":", 200), ("", 0)])
def test_the_pause_behind_a_clause_is_that_of_its_mark(mark: str, ms: int) -> None:
    clause = Clause(1, 0, "on" + mark, "on" + mark)
    assert len(pause(clause, RATE, 1.0)) == ms * MS
    assert len(pause(clause, RATE, 2.0)) == ms * MS // 2
    assert not len(pause(Clause(1, 0, "on" + mark, "on" + mark, last=True), RATE, 1.0))
