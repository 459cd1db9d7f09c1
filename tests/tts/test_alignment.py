# ruff: noqa: RUF001
"""Words among symbols: what belongs together, and when it sounds."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.tts.delivery import PacedWords, TimedWords, align, groups_of, word_times
from voiceloop.types import Span, SpokenWord

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
