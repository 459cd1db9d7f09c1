"""What is guessed, from which law, and how many guesses a round is worth."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import TypeVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.laws import CPU, Table
from voiceloop.llm.cache import KvCache
from voiceloop.llm.drafts import DraftLength, Guesses, ModelDraft, NgramDraft
from voiceloop.llm.sampling import Noise, Penalties, Sampling, Stream, choose, warp

pytestmark = pytest.mark.pure
LATER = DraftLength.FIRST_CLAUSE
T = TypeVar("T")


def run(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


# ---- the number of guesses

Seen = list[tuple[int, int, float, float]]
rounds = st.lists(
    st.integers(0, 8).flatmap(
        lambda k: st.tuples(st.just(k), st.integers(0, k), st.floats(0, 99), st.floats(0.01, 99))
    ),
    max_size=60,
)


def after(seen: Seen, fixed: int | None = None, cost: float = 0.15) -> DraftLength:
    length = DraftLength(fixed, cost, 0.05)
    for drafted, accepted, draft_ms, target_ms in seen:
        length.observe(drafted, accepted, draft_ms, target_ms)
    return length


@given(rounds, st.floats(0, 2), st.integers(0, 200))
def test_a_length_is_in_bounds_and_follows_from_what_was_observed(
    seen: Seen, cost: float, position: int
) -> None:
    length = after(seen, cost=cost).next(position)
    left = DraftLength.FIRST_CLAUSE - position
    assert 0 <= length <= (left if left > 0 else DraftLength.MOST)
    assert after(seen, cost=cost).next(position) == length


@given(rounds, st.integers(0, 9), st.integers(0, 200))
def test_a_fixed_length_stays(seen: Seen, fixed: int, position: int) -> None:
    assert after(seen, fixed).next(position) == fixed


class World:
    """Rounds whose guesses stand by chance, and what they take."""

    def __init__(
        self, rate: float, step_ms: float, pass_ms: Callable[[int], float], seed: int = 0
    ) -> None:
        self.rate, self.step_ms, self.pass_ms = rate, step_ms, pass_ms
        self.random = random.Random(seed)
        self.tokens = self.ms = 0.0
        self.drafted: list[int] = []

    def round(self, k: int) -> tuple[int, int, float, float]:
        accepted = 0
        while accepted < k and self.random.random() < self.rate:
            accepted += 1
        times = k * self.step_ms, self.pass_ms(k + 1)
        self.drafted.append(k)
        self.tokens += accepted + 1
        self.ms += sum(times)
        return k, accepted, *times

    def play(self, length: DraftLength, rounds: int) -> float:
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


@pytest.mark.parametrize("pass_ms", [flat, steep])
@pytest.mark.parametrize("step_ms", [0.3, 2.0, 9.0])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
def test_in_the_long_run_it_is_nearly_as_quick_as_the_best_fixed_length(
    rate: float, step_ms: float, pass_ms: Callable[[int], float]
) -> None:
    world = World(rate, step_ms, pass_ms)
    best = max(world.play(DraftLength(k, 0.1), 1000) for k in range(DraftLength.MOST + 1))
    # What a step and a row cost is not what it was told.
    assert world.play(DraftLength(None, 0.1, 0.02), 1000) > 0.93 * best


def test_where_guesses_are_for_nothing_few_are_made_and_none_too_many_to_come_back() -> None:
    length, useless = DraftLength(None, 0.1), World(0.0, 2.0, flat)
    useless.play(length, 100)
    useless.play(length, 1000)
    assert 0 < sum(useless.drafted) <= 1.2 * 1000 / DraftLength.PROBE
    assert max(useless.drafted) == 1
    good = World(0.95, 2.0, flat)
    good.play(length, 150)
    assert min(good.drafted[-20:]) >= 4


def test_what_a_pass_without_guesses_takes_is_measured_but_not_in_the_first_clause() -> None:
    length, world = DraftLength(None, 0.05), World(1.0, 0.1, flat)
    assert 0 < length.next(1) < DraftLength.FIRST_CLAUSE
    world.play(length, 3 * DraftLength.RECHECK)
    assert world.drafted[0] == 0 and world.drafted.count(0) == 3


def test_times_out_of_the_ordinary_do_not_count() -> None:
    usual: Seen = [(4, 3, 2.0, 10.0), (0, 0, 0.0, 9.0)] * 30
    hiccup: Seen = [(4, 3, 900.0, 9000.0), (0, 0, 0.0, 9000.0)]
    assert after(usual + hiccup).next(LATER) == after([*usual, *usual[:2]]).next(LATER) > 0


def test_guesses_that_stand_early_and_fail_late_make_drafts_short() -> None:
    plain: Seen = [(0, 0, 0.0, 10.0)]
    early: Seen = [(8, 2, 8.0, 10.0)] * 60 + plain  # the third never stands
    late: Seen = [(8, 8, 8.0, 10.0), (8, 0, 8.0, 10.0)] * 30 + plain
    assert after(early).next(LATER) == 2
    assert after(late).next(LATER) > 4


# ---- a model's guesses

SAMPLED = Sampling(0.9, top_k=5, repetition_penalty=1.4, frequency_penalty=0.4)
REJECTION = Sampling(0.9, top_k=5, repetition_penalty=1.4, verification="rejection")


class Counting:
    """Counts the passes of a model."""

    def __init__(self, inner: Table) -> None:
        self.inner, self.passes = inner, 0
        self.vocab, self.parameters, self.device = inner.vocab, 1, CPU
        self.pass_bytes = 0

    def forward(self, ids: torch.Tensor, cache: KvCache, keep: int) -> torch.Tensor:
        self.passes += 1
        return self.inner.forward(ids, cache, keep)


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED, REJECTION])
@pytest.mark.parametrize("seen", [0, 5, 9, 10])
def test_each_guess_is_drawn_from_the_law_that_is_handed_in(sampling: Sampling, seen: int) -> None:
    model, ids, count = Table(8, 3), [3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 0], 4
    penalties, source = Penalties(sampling, 8, CPU), Noise(0, 8, CPU)
    noise = source.gumbel(source.keys(Stream.CHOICE, 0, 0, count + 1))
    draft = ModelDraft(model, sampling, 32)
    run(draft.prefill(ids[:seen]))
    penalties.count(ids, 6)
    given_noise = noise if sampling.temperature else None
    guesses = run(draft.propose(ids, count, given_noise, penalties))
    assert len(guesses) == count and (guesses.laws is None) == (sampling is not REJECTION)
    known = list(ids)
    for index, token in enumerate(guesses.tokens.tolist()):
        penalties.count(known, 6)
        logits = model.forward(torch.tensor(known), KvCache(32), 1)
        scores = warp(penalties.apply(logits, torch.empty(0, dtype=torch.long)), sampling)
        row = None if given_noise is None else noise[index]
        assert choose(scores, row).item() == token
        if guesses.laws is not None:
            assert torch.equal(guesses.laws[index], scores[0].softmax(-1))
        known.append(token)
    assert draft.length == len(ids) + count - 1  # the last has not been seen


def test_a_step_of_a_models_guessing_is_at_most_one_pass() -> None:
    model, ids = Counting(Table(8, 3)), [i % 8 for i in range(200)]
    draft, penalties = ModelDraft(model, Sampling(), 256), Penalties(Sampling(), 8, CPU)
    for _ in draft.propose(ids, 4, None, penalties):
        assert model.passes <= 1
        model.passes = 0
    assert model.passes == 1


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED, REJECTION])
def test_nothing_is_guessed_after_the_end_of_a_reply(sampling: Sampling) -> None:
    ids, count = [3, 1, 4], 6
    source, penalties = Noise(0, 8, CPU), Penalties(sampling, 8, CPU)
    noise = source.gumbel(source.keys(Stream.CHOICE, 0, 0, count + 1))

    def guesses(ends: set[int]) -> Guesses:
        draft = ModelDraft(Table(8, 3), sampling, 32, frozenset(ends))
        penalties.count(ids, 2)
        given_noise = noise if sampling.temperature else None
        return run(draft.propose(ids, count, given_noise, penalties))

    free = guesses(set())
    for place, end in enumerate(free.tokens.tolist()):
        first = free.tokens.tolist().index(end)
        ended = guesses({end})
        assert ended.tokens.tolist() == free.tokens.tolist()[: first + 1], place
        assert (ended.laws is None) == (free.laws is None)
        if ended.laws is not None and free.laws is not None:
            assert torch.equal(ended.laws, free.laws[: first + 1])


def test_guesses_are_cut_with_their_laws() -> None:
    guesses = Guesses(torch.arange(4), torch.eye(4))
    part = guesses[1:3]
    assert part.tokens.tolist() == [1, 2] and torch.equal(part.laws, torch.eye(4)[1:3])  # type: ignore[arg-type]
    assert Guesses(torch.arange(4))[:2].laws is None


# ---- guesses from what was said before


def looked_up(ids: list[int], count: int) -> list[int]:
    """By a plain search: the longest n-gram, where it was said last, and what followed."""
    for size in range(NgramDraft.LONGEST, NgramDraft.SHORTEST - 1, -1):
        gram = ids[-size:]
        for end in range(len(ids) - 1, size - 1, -1):
            if len(gram) == size and ids[end - size : end] == gram:
                copied = list(ids)
                for index in range(count):
                    copied.append(copied[end + index])
                return copied[len(ids) :]
    return []


def proposed(draft: NgramDraft, ids: list[int], count: int) -> list[int]:
    guesses = run(draft.propose(ids, count, None, Penalties(Sampling(), 4, CPU)))
    assert guesses.laws is None
    return guesses.tokens.tolist()


changes = st.lists(
    st.tuples(st.integers(0, 25), st.lists(st.integers(0, 2), max_size=12), st.integers(1, 6)),
    max_size=8,
)


@settings(max_examples=60)
@given(changes)
def test_a_look_up_is_a_plain_search_whatever_was_said_and_taken_back(
    edits: list[tuple[int, list[int], int]],
) -> None:
    draft, ids = NgramDraft(CPU), list[int]()
    for cut, more, count in edits:
        draft.rollback(cut)
        del ids[cut:]
        ids += more
        assert proposed(draft, ids, count) == looked_up(ids, count)
        assert draft.length == len(ids)
        fresh = NgramDraft(CPU)
        run(fresh.prefill(ids))
        assert fresh._ends == draft._ends


def test_what_repeats_itself_goes_on_repeating() -> None:
    assert proposed(NgramDraft(CPU), [7, 1, 2, 3, 1, 2, 3, 1, 2], 7) == [3, 1, 2, 3, 1, 2, 3]


def test_a_look_up_reads_only_what_is_new() -> None:
    class Watched(list[int]):
        read = 0

        def __getitem__(self, part):  # type: ignore[override]
            taken = super().__getitem__(part)
            self.read += len(taken) if isinstance(part, slice) else 1
            return taken

    ids = Watched(i * i % 50 for i in range(5000))
    draft = NgramDraft(CPU)
    run(draft.prefill(ids))
    ids.read = 0
    ids.append(3)
    proposed(draft, ids, 4)
    assert ids.read == 1
