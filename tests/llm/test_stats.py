"""What steps took is counted once, and what was for nothing is known to be."""

from __future__ import annotations

from itertools import pairwise

import pytest

from voiceloop.llm.rules.stats import LlmCounters, Stats, Step
from voiceloop.llm.rules.verify import chain

pytestmark = pytest.mark.pure

PROMPT = Step((7,), start=0, rows=4, prompt=4, target_ms=8.0)
FIVE = chain(5)
ROUND = Step((1, 2, 3), FIVE, range(2), start=4, rows=3, draft_ms=5.0, target_ms=6.0)


def test_a_prompt_and_a_round_add_up() -> None:
    stats = Stats()
    stats.target_pass(PROMPT)
    before = stats.counters
    stats.round(ROUND)
    assert before == LlmCounters(target_passes=1, prefilled=4, target_ms=8.0)
    assert stats.counters == LlmCounters(
        drafted=5,
        tested=3,
        accepted=2,
        accepted_by_position=(1, 1),
        target_passes=2,
        prefilled=4,
        draft_ms=5.0,
        target_ms=14.0,
        wasted_ms=3.0,  # of the draft; the pass counts for the rows that stay
    )


def test_of_accepted_tokens_it_is_known_which_they_were() -> None:
    stats = Stats()
    for accepted in (3, 0, 1, 5):
        stats.round(Step((0,), FIVE, range(accepted), rows=accepted + 1))
    assert stats.counters.accepted_by_position == (3, 2, 2, 1, 1)
    assert stats.counters.tested == 4 + 1 + 2 + 5


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


def test_a_round_that_is_cut_off_took_time_and_gave_nothing() -> None:
    stats = Stats()
    stats.target_pass(PROMPT)
    stats.round(Step(start=4, draft_ms=2.5))
    counters = stats.counters
    assert counters.draft_ms == counters.wasted_ms == 2.5
    assert counters.target_passes == 1 and counters.drafted == 0
    stats.draft_prefill(9, 1.5)
    assert stats.counters.draft_prefilled == 9 and stats.counters.draft_ms == 4.0
