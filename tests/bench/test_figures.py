"""Figures against counting by hand and against the formulas they claim to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.bench.modes import (
    MeasuredReply,
    Verified,
    acceptance_by_position,
    paired,
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


def answer(tokens: int = 10, seconds: float = 1.0, rounds: int = 9) -> MeasuredReply:
    return MeasuredReply((), tokens, seconds, 0.1, (Verified(0, 0),) * rounds, tokens - 1)


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
