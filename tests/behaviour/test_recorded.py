"""Conversations do what they did when they were recorded.

Where a change is meant to change them, `python -m tests.behaviour.record SEED` shows a conversation
before and after it, and `python -m tests.behaviour.record` records them anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.behaviour.generated import case
from tests.behaviour.observed import digest, observed
from tests.behaviour.record import CONVERSATIONS, recorded

pytestmark = pytest.mark.virtual

KNOWN = recorded()
QUICK = 10
"""One in so many is played in the quick tests."""


def different(seeds: Sequence[int]) -> list[int]:
    return [seed for seed in seeds if digest(observed(case(seed))) != KNOWN[seed]]


def test_there_are_as_many_as_there_should_be() -> None:
    assert len(KNOWN) == CONVERSATIONS


def test_a_hundredth_of_the_conversations_are_as_recorded() -> None:
    assert not different([*KNOWN][:: QUICK**2])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_twentieth_of_the_conversations_are_as_recorded(part: int) -> None:
    assert not different([*KNOWN][:: 2 * QUICK][part::4])


@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_all_conversations_are_as_recorded(part: int) -> None:
    assert not different([*KNOWN][part::20])
