"""The length of a draft: short at first, longer the more of it stands, and never beyond bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.drafts import DraftLength

pytestmark = pytest.mark.pure
LATER = DraftLength.FIRST_CLAUSE


def after(rounds: list[tuple[int, int]], cost: float = 0.15) -> DraftLength:
    length = DraftLength(None, cost)
    for drafted, accepted in rounds:
        length.observe(drafted, accepted)
    return length


rounds = st.lists(
    st.integers(1, 8).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k))), max_size=60
)


@given(rounds, st.floats(0, 2), st.integers(0, 200))
def test_a_length_is_in_bounds_whatever_was_observed(
    seen: list[tuple[int, int]], cost: float, position: int
) -> None:
    length = after(seen, cost).next(position)
    assert 1 <= length <= (DraftLength.SHORT if position < LATER else DraftLength.MOST)


def test_more_acceptance_makes_drafts_longer() -> None:
    never, half, ever = (after([(4, n)] * 60).next(LATER) for n in (0, 2, 4))
    assert never == 1 < half < ever == DraftLength.MOST


def test_dearer_guesses_make_drafts_shorter() -> None:
    assert after([(4, 3)] * 60, 0.05).next(LATER) > after([(4, 3)] * 60, 0.5).next(LATER)


def test_what_is_recent_counts_most() -> None:
    assert after([(4, 4)] * 60 + [(4, 0)] * 60).next(LATER) == 1


@given(rounds, st.integers(0, 9), st.integers(0, 200))
def test_a_fixed_length_stays(seen: list[tuple[int, int]], fixed: int, position: int) -> None:
    length = DraftLength(fixed, 0.1)
    for drafted, accepted in seen:
        length.observe(drafted, accepted)
    assert length.next(position) == fixed
