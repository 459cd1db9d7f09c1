"""The prediction against the formulas that it claims to be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.decoding.prediction import StepCosts, expected_tokens, predicted_speedup
from voiceloop.bench.modes import Verified

pytestmark = pytest.mark.pure

SHARES = st.floats(0, 1)
SECONDS = st.floats(1e-4, 10)
COUNTS = st.lists(st.integers(0, 8), min_size=1, max_size=30)


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


@given(SHARES, st.integers(1, 8), st.integers(0, 8))
def test_a_round_that_ends_the_reply_is_expected_to_give_what_there_was_to_give(
    share: float, drafted: int, beyond: int
) -> None:
    costs = StepCosts({1: 0.01, drafted + 1: 0.01}, draft=0.0, draft_prefill=0.0)
    beyond = min(beyond, drafted)
    predicted = predicted_speedup([Verified(drafted, drafted, beyond)], share, costs, replies=1)
    chances = [share**place for place in range(drafted + 1 - beyond)]
    assert predicted == pytest.approx(math.fsum(chances))
