"""What happened against what is true, compared with the plain definitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.audio.frames import samples
from voiceloop.bench.clips import Pause, Said
from voiceloop.bench.scoring import (
    LAG_MS,
    MISSED_MS,
    WordErrors,
    endpoint_delay,
    false_cutoffs,
    plain_words,
    roc_auc,
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


def test_numbers_are_compared_as_they_are_said() -> None:
    assert plain_words("3.5 or -21?") == ["three", "point", "five", "or", "twenty", "one"]


@given(st.lists(st.tuples(sentences, sentences), max_size=4))
def test_the_rate_counts_every_word_alike(pairs: list[tuple[list[str], list[str]]]) -> None:
    rate = word_error_rate(word_errors(" ".join(s), " ".join(h)) for s, h in pairs)
    words = sum(len(said) for said, _ in pairs)
    if words:
        assert rate == sum(distance(said, heard) for said, heard in pairs) / words
    else:
        assert rate is None


def test_where_nothing_was_said_there_is_no_rate() -> None:
    assert word_error_rate([]) is None
    assert word_error_rate([WordErrors(0, 2, 0)]) is None


# ---- endpoints

SAID = Said(
    "a b c",
    (),
    1000,
    50_000,
    (Pause(1, "a", "incomplete", 8000, 12_000), Pause(2, "a b", "whole", 20_000, 30_000)),
)
LAG, MISSED = samples(LAG_MS), samples(MISSED_MS)
EDGES = (8000, 12_000, 12_000 + LAG, 20_000, 30_000 + LAG, 50_000, 50_000 + MISSED)
moments = st.one_of(
    st.integers(0, 100_000), st.sampled_from(EDGES), st.sampled_from([at - 1 for at in EDGES])
)


@given(st.lists(moments, max_size=5))
def test_an_endpoint_before_the_end_of_speech_is_a_false_cut_off(endpoints: list[int]) -> None:
    assert SAID.pauses and SAID.end
    early = [at for at in endpoints if at < SAID.end]
    found = false_cutoffs(SAID, endpoints)
    assert len(found) == len(early)
    for at, pause in zip(early, found, strict=True):
        inside = [p for p in SAID.pauses if p.start <= at < p.end + LAG]
        assert ([pause] if pause else []) == inside


@given(st.lists(moments, max_size=5))
def test_the_delay_is_that_of_the_first_endpoint_after_the_end(endpoints: list[int]) -> None:
    assert SAID.end
    delays = [at - SAID.end for at in endpoints if SAID.end <= at <= SAID.end + MISSED]
    assert endpoint_delay(SAID, endpoints) == (min(delays) if delays else None)


def test_what_is_not_known_is_not_judged() -> None:
    with pytest.raises(ValueError, match="not known"):
        endpoint_delay(Said("a"), [3])
    with pytest.raises(ValueError, match="known"):
        false_cutoffs(Said("a", end=3), [3])


# ---- scores

scores = st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), min_size=1, max_size=8)


@given(scores, scores)
def test_the_area_is_the_share_of_pairs_in_the_right_order(
    positive: list[float], negative: list[float]
) -> None:
    pairs = [(p > n) + 0.5 * (p == n) for p, n in product(positive, negative)]
    assert roc_auc(positive, negative) == pytest.approx(sum(pairs) / len(pairs))


@given(scores, scores)
def test_the_area_of_the_opposite_score_is_the_rest(
    positive: list[float], negative: list[float]
) -> None:
    assert roc_auc(positive, negative) + roc_auc(negative, positive) == pytest.approx(1)


@pytest.mark.parametrize(("positive", "negative"), [([], [1.0]), ([1.0], []), ([], [])])
def test_both_kinds_are_needed(positive: list[float], negative: list[float]) -> None:
    with pytest.raises(ValueError, match="both kinds"):
        roc_auc(positive, negative)
