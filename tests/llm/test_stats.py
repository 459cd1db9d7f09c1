"""What steps took is counted once, and what was for nothing is known to be."""

from __future__ import annotations

from itertools import pairwise

import pytest

from voiceloop.llm.rules.stats import Stats, Step
from voiceloop.llm.rules.verify import chain

pytestmark = pytest.mark.pure

PROMPT = Step((7,), start=0, rows=4, prompt=4, target_ms=8.0)
FIVE = chain(5)
ROUND = Step((1, 2, 3), FIVE, range(2), start=4, rows=3, draft_ms=5.0, target_ms=6.0)


def test_what_is_rolled_back_was_for_nothing_with_what_it_took() -> None:
    stats = Stats()
    stats.target_pass(PROMPT)
    stats.round(ROUND)
    took = [stats.counters.wasted_ms]
    for length in range(6, 2, -1):  # two accepted tokens, the reply's last, one of the prompt
        stats.rolled_back(length, known=length + 1)
        took.append(stats.counters.wasted_ms)
    assert [after - before for before, after in pairwise(took)] == [2 + 1, 2 + 1, 2, 2]
    assert stats.counters.wasted == 4


def test_what_was_rolled_back_is_not_counted_again() -> None:
    stats = Stats()
    stats.target_pass(PROMPT)
    stats.rolled_back(1, known=4)
    wasted_ms = stats.counters.wasted_ms
    # A pass over rows 1 to 3, two of which are rejected before it is known what they took.
    stats.rolled_back(2, known=4)
    stats.round(Step((5,), chain(2), start=1, rows=1, target_ms=3.0))
    assert stats.counters.wasted == 3 + 2
    assert stats.counters.wasted_ms == wasted_ms == pytest.approx(6.0)


def test_rows_that_went_with_their_cache_were_not_for_nothing() -> None:
    stats = Stats()
    stats.target_pass(PROMPT)
    stats.rolled_back(0, known=0)  # another conversation has the buffers
    assert stats.counters.wasted == 0 and stats.counters.wasted_ms == 0
    stats.target_pass(PROMPT)
    stats.rolled_back(0, known=4)
    assert stats.counters.wasted == 4 and stats.counters.wasted_ms == pytest.approx(8.0)
