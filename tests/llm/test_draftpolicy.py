"""How many draft tokens a round is worth."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.rules.draftpolicy import MOST, DraftPolicy
from voiceloop.llm.rules.verify import Tree, chain

pytestmark = pytest.mark.pure
LATER = DraftPolicy.FIRST_CLAUSE
Seen = list[tuple[int, int, float, float]]
rounds = st.lists(
    st.integers(0, 8).flatmap(
        lambda k: st.tuples(st.just(k), st.integers(0, k), st.floats(0, 99), st.floats(0.01, 99))
    ),
    max_size=60,
)


def rising(row: float) -> dict[int, float]:
    """What passes cost if each further row costs as much, next to the first."""
    return {1: 1.0, MOST + 1: 1.0 + MOST * row}


FOURS = {1: 1.0, 2: 1.5, 3: 2.0, 4: 1.4, 5: 2.6, 7: 3.2, 8: 2.7, 9: 4.0, 17: 7.0}
"""What passes cost in kernels that work on four rows at a time, about as llama.cpp's do."""


def after(seen: Seen, fixed: int | None = None, cost: float = 0.15) -> DraftPolicy:
    length = DraftPolicy(fixed, cost, rising(0.05))
    for drafted, accepted, draft_ms, target_ms in seen:
        length.observe(chain(drafted), range(accepted), draft_ms, target_ms)
    return length


@given(rounds, st.floats(0, 2), st.integers(0, 200))
def test_a_length_is_in_bounds_and_follows_from_what_was_observed(
    seen: Seen, cost: float, position: int
) -> None:
    length = len(after(seen, cost=cost).next(position))
    left = DraftPolicy.FIRST_CLAUSE - position
    assert 0 <= length <= (left if left > 0 else MOST)
    assert len(after(seen, cost=cost).next(position)) == length


class World:
    """Rounds whose draft tokens are accepted by chance, and what they take."""

    def __init__(
        self, rate: float, step_ms: float, pass_ms: Callable[[int], float], seed: int = 0
    ) -> None:
        self.rate, self.step_ms, self.pass_ms = rate, step_ms, pass_ms
        self.random = random.Random(seed)
        self.tokens = self.ms = 0.0
        self.drafted: list[int] = []

    def round(self, tree: Tree) -> tuple[Tree, range, float, float]:
        k = len(tree)
        accepted = 0
        while accepted < k and self.random.random() < self.rate:
            accepted += 1
        times = k * self.step_ms, self.pass_ms(k + 1)
        self.drafted.append(k)
        self.tokens += accepted + 1
        self.ms += sum(times)
        return tree, range(accepted), *times

    def play(self, length: DraftPolicy, rounds: int) -> float:
        """Tokens a millisecond over so many rounds."""
        self.tokens = self.ms = 0.0
        self.drafted.clear()
        for _ in range(rounds):
            length.observe(*self.round(length.next(LATER)))
        return self.tokens / self.ms


def flat(rows: int) -> float:
    return 10.0


def steep(rows: int) -> float:
    return 4.0 + 3 * rows


@pytest.mark.slow
@pytest.mark.parametrize("pass_ms", [flat, steep])
@pytest.mark.parametrize("step_ms", [0.3, 2.0, 9.0])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_in_the_long_run_it_is_nearly_as_quick_as_the_best_fixed_length(
    rate: float, step_ms: float, pass_ms: Callable[[int], float]
) -> None:
    world = World(rate, step_ms, pass_ms)
    best = max(world.play(DraftPolicy(k, 0.1), 1000) for k in range(MOST + 1))
    # What a step and a row cost is not what it was told.
    assert world.play(DraftPolicy(None, 0.1, rising(0.02)), 1000) > 0.93 * best


def test_where_drafts_are_for_nothing_few_are_made_and_none_too_many_to_come_back() -> None:
    length, useless = DraftPolicy(None, 0.1), World(0.0, 2.0, flat)
    useless.play(length, 100)
    useless.play(length, 1000)
    assert 0 < sum(useless.drafted) <= 1.2 * 1000 / DraftPolicy.PROBE
    assert max(useless.drafted) == 1
    good = World(0.95, 2.0, flat)
    good.play(length, 8 * DraftPolicy.PROBE)
    assert sorted(good.drafted[-20:])[1] >= 4, "but for one round, which is measured without"


def test_a_draft_that_would_slow_decoding_by_far_is_seldom_tried() -> None:
    policy, slow = DraftPolicy(None, 0.1), World(0.05, 1.0, lambda rows: 10.0 if rows == 1 else 25)
    assert slow.play(policy, 1000) > 0.98 / 10
    assert 0 < sum(slow.drafted) < 1000 / (2 * DraftPolicy.PROBE)


def test_what_a_pass_without_draft_tokens_takes_is_measured_but_not_in_the_first_clause() -> None:
    length, world = DraftPolicy(None, 0.05), World(1.0, 0.1, flat)
    assert 0 < len(length.next(1)) < DraftPolicy.FIRST_CLAUSE
    world.play(length, 3 * DraftPolicy.RECHECK)
    assert world.drafted[0] == 0 and world.drafted.count(0) == 3


@pytest.mark.parametrize(("rate", "rows"), [(0.2, {1}), (0.6, {4}), (0.95, {4, 8})])
def test_rows_that_cost_less_together_are_filled_or_left(rate: float, rows: set[int]) -> None:
    """And a time that was measured for other rows changes nothing about it."""
    seen: Seen = [(0, 0, 0.0, 30.0)]
    chance = random.Random(1)
    for _ in range(150):
        accepted = next((n for n in range(3) if chance.random() >= rate), 3)
        seen.append((3, accepted, 0.0, 30 * FOURS[4]))
    policy = DraftPolicy(None, 0.0, FOURS)
    assert len(policy.next(LATER)) + 1 in {1, 4, 8}
    for drafted, accepted, draft_ms, target_ms in seen:
        policy.observe(chain(drafted), range(accepted), draft_ms, target_ms)
    assert len(policy.next(LATER)) + 1 in rows


def test_times_out_of_the_ordinary_do_not_count() -> None:
    usual: Seen = [(4, 3, 2.0, 10.0), (0, 0, 0.0, 9.0)] * 30
    hiccup: Seen = [(4, 3, 900.0, 9000.0), (0, 0, 0.0, 9000.0)]
    found = after(usual + hiccup).next(LATER)
    assert found and found == after([*usual, *usual[:2]]).next(LATER)


def test_tokens_that_are_accepted_early_and_rejected_late_make_drafts_short() -> None:
    plain: Seen = [(0, 0, 0.0, 10.0)]
    early: Seen = [(8, 2, 8.0, 10.0)] * 60 + plain  # the third never is
    late: Seen = [(8, 8, 8.0, 10.0), (8, 0, 8.0, 10.0)] * 30 + plain
    assert len(after(early).next(LATER)) == 2
    assert len(after(late).next(LATER)) > 4
