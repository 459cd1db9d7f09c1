"""Figures against counting by hand and against the formulas they claim to be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.bench.figures import (
    Answer,
    StepCosts,
    Verified,
    acceptance,
    acceptance_by_position,
    expected_tokens,
    paired,
    per_round,
    predicted_speedup,
    quartiles,
)

pytestmark = pytest.mark.pure

SHARES = st.floats(0, 1)
SECONDS = st.floats(1e-4, 10)
COUNTS = st.lists(st.integers(0, 8), min_size=1, max_size=30)


@st.composite
def verified(draw: st.DrawFn) -> Verified:
    drafted = draw(st.integers(0, 8))
    return Verified(drafted, draw(st.none() | st.integers(0, drafted)))


ROUNDS = st.lists(verified(), max_size=30)


def answer(tokens: int = 10, seconds: float = 1.0, rounds: int = 9) -> Answer:
    return Answer((), tokens, seconds, 0.1, (Verified(0, 0),) * rounds, tokens - 1)


@given(ROUNDS)
def test_a_guess_is_tested_where_all_before_it_stood(rounds: list[Verified]) -> None:
    places = acceptance_by_position(rounds)
    known = [one for one in rounds if one.accepted is not None]
    for place, (tested, stood) in enumerate(places):
        assert stood <= tested
        reached = [one for one in known if one.drafted > place and (one.accepted or 0) >= place]
        assert tested == len(reached)
    # Each round ends with one guess that fell, or with none where all stood.
    fell = sum((one.accepted or 0) < one.drafted for one in known)
    assert sum(tested - stood for tested, stood in places) == fell
    assert sum(stood for _, stood in places) == sum(one.accepted or 0 for one in known)


@given(ROUNDS)
def test_acceptance_is_what_stood_of_what_was_tested(rounds: list[Verified]) -> None:
    known = [one for one in rounds if one.accepted is not None]
    tested = sum(min((one.accepted or 0) + 1, one.drafted) for one in known)
    stood = sum(one.accepted or 0 for one in known)
    assert acceptance(rounds) == (stood / tested if tested else None)


@given(SHARES, st.integers(0, 12))
def test_expected_tokens_are_the_sum_of_chances_to_get_that_far(share: float, drafted: int) -> None:
    chances = math.fsum(share**place for place in range(drafted + 1))
    assert expected_tokens(share, drafted) == pytest.approx(chances, rel=1e-6)


@given(SHARES, st.integers(1, 8), SECONDS, SECONDS)
def test_without_overheads_the_prediction_is_leviathans(
    share: float, drafted: int, target: float, draft: float
) -> None:
    costs = StepCosts({1: target, drafted + 1: target}, draft, draft_prefill=0)
    predicted = predicted_speedup([Verified(drafted, 0)] * 3, share, costs, replies=1)
    assert predicted == pytest.approx(
        expected_tokens(share, drafted) / (drafted * draft / target + 1)
    )


@given(COUNTS, SHARES, SECONDS, SECONDS, SECONDS)
def test_whatever_costs_more_in_a_round_predicts_less(
    counts: list[int], share: float, target: float, draft: float, more: float
) -> None:
    def predict(draft: float, row: float, prefill: float) -> float:
        passes = {rows: target + (rows - 1) * row for rows in range(1, 10)}
        costs = StepCosts(passes, draft, prefill, rest=0.5 * target)
        rounds = [Verified(count, 0) for count in counts]
        return predicted_speedup(rounds, share, costs, replies=2)

    base = predict(draft, 0.0, 0.0)
    assert predict(draft, 0.0, more) < base
    if any(counts):
        assert predict(draft + more, 0.0, 0.0) < base
        assert predict(draft, more, 0.0) < base


def test_without_guesses_nothing_is_gained_or_lost() -> None:
    costs = StepCosts({1: 0.01}, 0.001, 0.0, rest=0.002)
    assert predicted_speedup([Verified(0, 0)] * 5, 0.9, costs, replies=1) == pytest.approx(1)


@given(SHARES, st.integers(1, 8), st.integers(0, 8))
def test_a_round_that_ends_the_reply_is_expected_to_give_what_there_was_to_give(
    share: float, drafted: int, beyond: int
) -> None:
    costs = StepCosts({1: 0.01, drafted + 1: 0.01}, draft=0.0, draft_prefill=0.0)
    beyond = min(beyond, drafted)
    predicted = predicted_speedup([Verified(drafted, drafted, beyond)], share, costs, replies=1)
    chances = [share**place for place in range(drafted + 1 - beyond)]
    assert predicted == pytest.approx(math.fsum(chances))


@given(st.lists(SECONDS, min_size=1, max_size=20))
def test_quartiles_surround_the_median(values: list[float]) -> None:
    found = quartiles(values)
    assert min(values) <= found.low <= found.middle <= found.high <= max(values)
    below = sum(value <= found.middle for value in values)
    assert below >= len(values) / 2


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=20), st.floats(0.1, 10))
def test_a_ratio_does_not_feel_what_slows_a_pair_down(
    times: list[tuple[float, float]], drag: float
) -> None:
    def ratio(factors: list[float]) -> float:
        fast = [answer(seconds=a * f) for (a, _), f in zip(times, factors, strict=True)]
        slow = [answer(seconds=b * f) for (_, b), f in zip(times, factors, strict=True)]
        return paired(fast, slow).middle

    slowed = [drag if index % 2 else 1.0 for index in range(len(times))]
    assert ratio(slowed) == pytest.approx(ratio([1.0] * len(times)))


def test_a_reply_of_one_token_has_no_round() -> None:
    assert per_round([answer(tokens=1, rounds=0)]) == 1
    assert per_round([answer(tokens=1, rounds=0), answer(tokens=10, rounds=3)]) == 3
