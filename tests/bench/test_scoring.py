"""What happened against what is true, compared with the plain definitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.bench.record import (
    word_error_rate,
    word_errors,
)

pytestmark = pytest.mark.pure

sentences = st.lists(st.sampled_from("abc"), max_size=6)


# ---- words


def distance(said: Sequence[str], heard: Sequence[str]) -> int:
    """The least number of errors, by its definition."""

    @cache
    def least(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = said[i - 1] == heard[j - 1]
        return min(least(i - 1, j - 1) + (not same), least(i - 1, j) + 1, least(i, j - 1) + 1)

    return least(len(said), len(heard))


@given(sentences, sentences)
def test_errors_are_the_least_that_turn_one_text_into_the_other(
    said: list[str], heard: list[str]
) -> None:
    found = word_errors(" ".join(said), " ".join(heard))
    assert (found.words, found.errors) == (len(said), distance(said, heard))


@given(sentences, sentences)
def test_the_lost_tail_is_the_longest_that_may_have_been_left_out(
    said: list[str], heard: list[str]
) -> None:
    tails = [
        k
        for k in range(len(said) + 1)
        if distance(said[: len(said) - k], heard) + k == distance(said, heard)
    ]
    assert word_errors(" ".join(said), " ".join(heard)).tail == max(tails)


@pytest.mark.parametrize(
    ("said", "heard", "errors", "tail"),
    [
        ("What is 12 plus 3?", "what is twelve plus three", 0, 0),
        ("It's twenty-one, isn't it?", "its twenty one isnt it", 0, 0),
        (
            "How much is 1,760 yards?",
            "How much is one thousand seven hundred and sixty yards",
            0,
            0,
        ),
        ("Start a timer for 90 seconds.", "Start a timer for ninety", 1, 1),
        ("Tell me a joke right now.", "Tell me a joke", 2, 2),
        ("Tell me a joke.", "", 4, 4),
        ("Stop.", "Stop it please", 2, 0),
        ("", "", 0, 0),
        ("Is wool white?", "Is it white?", 1, 0),
    ],
)
def test_words_are_compared_without_case_marks_and_digits(
    said: str, heard: str, errors: int, tail: int
) -> None:
    found = word_errors(said, heard)
    assert (found.errors, found.tail) == (errors, tail)


@given(st.lists(st.tuples(sentences, sentences), max_size=4))
def test_the_rate_counts_every_word_alike(pairs: list[tuple[list[str], list[str]]]) -> None:
    rate = word_error_rate(word_errors(" ".join(s), " ".join(h)) for s, h in pairs)
    words = sum(len(said) for said, _ in pairs)
    if words:
        assert rate == sum(distance(said, heard) for said, heard in pairs) / words
    else:
        assert rate is None
