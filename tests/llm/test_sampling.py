"""Choosing tokens: how they are distributed, their noise, and what penalties and warping do."""

from __future__ import annotations

from collections.abc import Sequence, Set

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor

from tests.llm.distributions import CPU, p_value
from voiceloop.llm.rules.sampling import (
    Noise,
    Penalties,
    Sampling,
    choose,
    decide_call,
    warp,
)

pytestmark = pytest.mark.pure
NONE = torch.empty(0, dtype=torch.long)
VOCAB = 6


def drawn(logits: torch.Tensor, sampling: Sampling, n: int = 20_000) -> torch.Tensor:
    """How often each token is chosen at `n` positions with the same logits."""
    noise = Noise(sampling.seed, len(logits), CPU)
    rows = noise.gumbel(noise.keys(3, 0, n))
    chosen = choose(warp(logits.unsqueeze(0), sampling), rows)
    return torch.bincount(chosen, minlength=len(logits))


GRID = [
    Sampling(temperature=1.0),
    Sampling(temperature=0.6),
    Sampling(temperature=1.5, top_k=5),
    Sampling(temperature=1.0, top_p=0.8),
    Sampling(temperature=1.0, min_p=0.15),
    Sampling(temperature=1.3, top_k=9, top_p=0.9, min_p=0.02),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sampling", GRID)
def test_chosen_tokens_follow_the_warped_distribution(sampling: Sampling, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(8 + 12 * seed, generator=generator, dtype=torch.float64)
    sampling = Sampling(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, seed)
    p = warp(logits, sampling).softmax(-1)
    assert p_value(drawn(logits, sampling), p) > 1e-4


# ---- whether a reply calls a tool


def test_words_may_be_likelier_together_than_the_likeliest_token() -> None:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    assert int(logits.argmax()) == 0
    for begins, calls in (({0}, False), ({0, 3}, True), ({1, 2}, True), ({1, 3}, False)):
        (scores,) = decide_call(2 * logits.unsqueeze(0), logits, frozenset(begins))
        assert (int(scores.argmax()) in begins) == calls
        kept = scores > -torch.inf
        assert torch.equal(scores[kept], 2 * logits[kept])
        assert {*kept.nonzero().flatten().tolist()} == (begins if calls else {*range(4)} - begins)


def test_tokens_of_calls_that_the_model_does_not_have_are_left_out() -> None:
    logits = torch.tensor([0.6, 0.4]).log()
    (scores,) = decide_call(logits.unsqueeze(0), logits, frozenset({0, 2}))
    assert scores.tolist() == [logits[0], -torch.inf]


# ---- noise


def test_noise_is_gumbel_noise() -> None:
    source = Noise(0, 500, CPU)
    noise = source.gumbel(source.keys(0, 0, 400))
    bins = (
        torch.exp(-torch.exp(-noise)).flatten().mul(50).long()
    )  # uniform under its own distribution
    assert p_value(torch.bincount(bins, minlength=50), torch.full((50,), 0.02)) > 1e-4
    for a, b in ((noise[:-1], noise[1:]), (noise[:, :-1], noise[:, 1:])):  # positions, tokens
        assert abs(correlation(a, b)) < 0.012


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    return torch.corrcoef(torch.stack((a.flatten(), b.flatten())))[0, 1].item()


@given(
    st.integers(0, 2**63), st.integers(0, 10**6), st.integers(0, 500), st.integers(1, 9), st.data()
)
def test_a_positions_noise_does_not_depend_on_the_rows_it_is_made_with(
    seed: int, turn: int, position: int, rows: int, data: st.DataObject
) -> None:
    noise = Noise(seed, 30, CPU)
    keys = noise.keys(turn, position, rows)
    row = data.draw(st.integers(0, rows - 1))
    alone = noise.keys(turn, position + row, 1)
    assert torch.equal(noise.gumbel(keys)[row], noise.gumbel(alone)[0])


numbers = st.tuples(*[st.integers(0, 3)] * 3)


@given(numbers, numbers)
def test_seed_turn_and_position_each_change_the_noise(
    a: tuple[int, int, int], b: tuple[int, int, int]
) -> None:
    first, second = (
        (noise := Noise(seed, 20, CPU)).gumbel(noise.keys(turn, position, 1))
        for seed, turn, position in (a, b)
    )
    assert torch.equal(first, second) == (a == b)


# ---- penalties and bans


def plainly_penalised(
    logits: Sequence[float], sampling: Sampling, earlier: Set[int], reply: Sequence[int]
) -> list[float]:
    """By the definitions, token by token."""
    scores: list[float] = []
    for token, score in enumerate(logits):
        if token in reply or token in earlier:
            over = score / sampling.repetition_penalty
            score = score * sampling.repetition_penalty if score < 0 else over
        score -= sampling.frequency_penalty * reply.count(token)
        score -= sampling.presence_penalty * (token in reply)
        scores.append(score)
    return [-torch.inf if i in sampling.banned else score for i, score in enumerate(scores)]


tokens = st.lists(st.integers(0, VOCAB - 1), max_size=7)
samplings = st.builds(
    Sampling,
    repetition_penalty=st.sampled_from([1.0, 1.4, 0.8]),
    presence_penalty=st.sampled_from([0.0, 0.7]),
    frequency_penalty=st.sampled_from([0.0, 0.3, -0.2]),
    banned=st.frozensets(st.integers(0, VOCAB - 1), max_size=2),
)


def rows_of(data: st.DataObject, count: int) -> torch.Tensor:
    seed = data.draw(st.integers(0, 99))
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, VOCAB, generator=generator, dtype=torch.float64)


@given(samplings, st.lists(st.sets(st.integers(0, VOCAB - 1)), max_size=3), st.data())
def test_each_row_is_penalised_for_all_that_precedes_it(
    sampling: Sampling, replies: list[set[int]], data: st.DataObject
) -> None:
    prompt, reply, x = data.draw(tokens), data.draw(tokens), data.draw(tokens)
    penalties, earlier = Penalties(sampling, VOCAB, CPU), set[int]()
    for earlier in replies:
        penalties.begin(earlier)
    penalties.count(prompt + reply, len(prompt))
    logits = rows_of(data, data.draw(st.integers(1, len(x) + 1)))
    found = penalties.apply(logits, torch.tensor(x, dtype=torch.long))
    for back, (row, scores) in enumerate(zip(reversed(logits), reversed(found), strict=True)):
        before = reply + x[: len(x) - back]
        expected = plainly_penalised(row.tolist(), sampling, earlier, before)
        assert scores.tolist() == pytest.approx(expected, abs=1e-12)
        penalties.rollback(0)
        penalties.count(prompt + before, len(prompt))
        assert torch.equal(penalties.apply(row.unsqueeze(0), NONE)[0], scores)  # to the last bit


@given(samplings, st.lists(st.tuples(st.integers(0, 9), tokens), max_size=5), st.data())
def test_counting_what_is_new_is_counting_all(
    sampling: Sampling, changes: list[tuple[int, list[int]]], data: st.DataObject
) -> None:
    penalties, ids, logits = Penalties(sampling, VOCAB, CPU), [1, 2], rows_of(data, 1)
    for cut, more in changes:
        penalties.rollback(cut)
        del ids[cut:]
        ids += more
        penalties.count(ids, 2)
        fresh = Penalties(sampling, VOCAB, CPU)
        fresh.count(ids, 2)
        assert torch.equal(penalties.apply(logits, NONE), fresh.apply(logits, NONE))


@given(st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=7), st.data())
def test_the_repetition_penalty_is_that_of_transformers(
    ids: list[int], data: st.DataObject
) -> None:
    penalties, logits = Penalties(Sampling(repetition_penalty=1.7), VOCAB, CPU), rows_of(data, 1)
    penalties.count(ids, 1)
    theirs = RepetitionPenaltyLogitsProcessor(1.7, prompt_ignore_length=1)(
        torch.LongTensor([ids]), torch.FloatTensor(logits.float())
    )
    assert torch.allclose(penalties.apply(logits.float(), NONE), theirs)


def test_where_all_is_off_logits_pass_untouched() -> None:
    penalties, logits = Penalties(Sampling(0.7), VOCAB, CPU), torch.zeros(2, VOCAB)
    penalties.count([1, 2, 3], 1)
    assert penalties.apply(logits, torch.tensor([4])) is logits


# ---- warping


def plainly_kept(logits: list[float], sampling: Sampling) -> set[int]:
    """The tokens that stay, by the definition."""
    scores = [x / sampling.temperature for x in logits]
    kept = sorted(range(len(scores)), key=lambda i: -scores[i])
    if sampling.top_k:
        kept = kept[: sampling.top_k]
    weights = torch.tensor([scores[i] for i in kept], dtype=torch.float64).softmax(-1).tolist()
    if sampling.top_p < 1:
        total, stop = 0.0, 0
        while stop == 0 or (stop < len(kept) and total < sampling.top_p):
            total += weights[stop]
            stop += 1
        kept = kept[:stop]
    top = scores[kept[0]]
    ratio = torch.tensor([scores[i] - top for i in kept], dtype=torch.float64).exp().tolist()
    return {i for i, r in zip(kept, ratio, strict=True) if r >= sampling.min_p}


@given(
    st.lists(st.integers(-400, 400), min_size=1, max_size=12, unique=True),
    st.sampled_from([0.3, 0.7, 1.0, 2.0]),
    st.integers(0, 6),
    st.sampled_from([0.0, 0.31, 0.62, 0.93, 1.0]),
    st.sampled_from([0.0, 0.0117, 0.213, 0.997]),
)
def test_warping_keeps_what_the_definitions_keep_and_nothing_else(
    hundredths: list[int], temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    logits = [x / 100 for x in hundredths]
    sampling = Sampling(temperature, top_k, top_p, min_p)
    scores = warp(torch.tensor(logits, dtype=torch.float64), sampling)
    assert set(scores.isfinite().nonzero().flatten().tolist()) == plainly_kept(logits, sampling)
    assert scores.argmax() == torch.tensor(logits).argmax()
