"""The wake phrase in recognised words, and the sounds of waking and falling asleep."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.errors import ConfigError
from voiceloop.wake.phrase import AMPLITUDE, MOST_LETTERS, Phrase, chime, edit_distance

pytestmark = pytest.mark.pure

OKAY = Phrase(" Okay  computer ")
WORDS = st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=6), max_size=5)


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("Okay, computer.", 2),
        ("okay computer what time is it", 2),
        ("OK, Computer, what time is it?", 2),
        ("Okay compute or what time is it", 3),  # a word that was divided
        ("O.K. Computer!", 2),
        ("Okaycomputer", 1),
        ("Kay computer", 2),
        ("Okay", 0),
        ("", 0),
        ("Okay commuter", 2),  # what the phrase sounds like
        ("Okay come over", 0),
        ("My computer is slow", 0),
        ("A computer is a machine", 0),
        ("I said okay computer", 0),
        ("Computer", 0),
    ],
)
def test_the_phrase_is_told_by_its_letters(said: str, count: int) -> None:
    assert OKAY.count(said.split()) == count


def test_where_it_is_known_to_be_said_more_letters_may_be_wrong() -> None:
    heard = "K computer, what time is it?".split()
    assert (OKAY.count(heard), OKAY.count(heard, said=True)) == (0, 2)
    assert OKAY.count("What time is it?".split(), said=True) == 0


@given(WORDS)
def test_the_phrase_before_any_words_is_found_whole(words: list[str]) -> None:
    assert OKAY.count(["okay", "computer", *words]) == 2


@given(WORDS)
def test_words_that_may_still_become_the_phrase_are_no_more_than_it(words: list[str]) -> None:
    letters = sum(map(len, words))
    assert OKAY.begins(words) == (letters < len("okaycomputer") + 2)


class ReadWords(list[str]):
    """Words that count how many of them were read."""

    read = 0

    def __iter__(self) -> Iterator[str]:
        for word in super().__iter__():
            self.read += 1
            yield word


@pytest.mark.parametrize("said", [False, True])
def test_words_beyond_the_length_of_the_phrase_are_not_read(said: bool) -> None:
    words = ReadWords("x" * 1000)
    assert OKAY.count(words, said=said) == 0
    assert words.read <= len("okaycomputer") * 4 // 3 + 1


@cache
def plain_distance(left: str, right: str) -> int:
    """The edit distance by its definition."""
    if not left or not right:
        return len(left or right)
    changed = plain_distance(left[1:], right[1:]) + (left[0] != right[0])
    return min(changed, 1 + plain_distance(left[1:], right), 1 + plain_distance(left, right[1:]))


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_the_edit_distance_equals_its_definition(left: str, right: str) -> None:
    assert edit_distance(left, right) == plain_distance(left, right)


@pytest.mark.parametrize("text", ["", "hi", "...", "hey \t!", "a" * (MOST_LETTERS + 1)])
def test_a_phrase_of_too_few_or_too_many_letters_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="letters, and can have") as refused:
        Phrase(text)
    assert "okay computer" in refused.value.hint


@pytest.mark.parametrize("rate", [8_000, 48_000])
@pytest.mark.parametrize("opens", [True, False])
def test_the_chime_is_short_quiet_without_a_click_and_rises_to_wake(rate: int, opens: bool) -> None:
    pcm = chime(rate, opens=opens)
    assert pcm.dtype == np.float32
    assert len(pcm) / rate == pytest.approx(0.17, abs=0.001)
    assert 0.9 * AMPLITUDE < np.abs(pcm).max() <= AMPLITUDE
    assert np.abs(np.diff(pcm, prepend=0, append=0)).max() < AMPLITUDE * 2 * np.pi * 880 / rate
    first, second = (np.abs(np.fft.rfft(half)).argmax() for half in np.array_split(pcm, 2))
    assert (first < second) == opens
