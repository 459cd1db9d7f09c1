"""Choosing tokens: the law of the coupled choice, its noise, and what warping rules out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.sampling import Sampling, choose, gumbel, warp

pytestmark = pytest.mark.pure
CPU = torch.device("cpu")


def p_value(counts: torch.Tensor, law: torch.Tensor) -> float:
    """Of Pearson's chi-square test; all mass outside the support of `law` is a p-value of 0."""
    if counts[law == 0].any():
        return 0.0
    counts, law = counts[law > 0].double(), law[law > 0].double()
    expected = law * counts.sum()
    small = expected < 5  # bins too small for the approximation are merged
    if small.any():
        counts = torch.cat((counts[~small], counts[small].sum().view(1)))
        expected = torch.cat((expected[~small], expected[small].sum().view(1)))
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = torch.tensor((len(counts) - 1) / 2, dtype=torch.float64)
    return torch.special.gammaincc(freedom, statistic / 2).item()


def drawn(logits: torch.Tensor, sampling: Sampling, n: int = 20_000) -> torch.Tensor:
    """How often each token is chosen at `n` positions with the same logits."""
    noise = gumbel(sampling, 3, 0, n, len(logits), CPU)
    chosen = choose(logits.expand(n, -1), sampling, noise)
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
def test_chosen_tokens_follow_the_warped_law(sampling: Sampling, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(8 + 12 * seed, generator=generator, dtype=torch.float64)
    sampling = Sampling(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, seed)
    law = warp(logits, sampling).softmax(-1)
    assert p_value(drawn(logits, sampling), law) > 1e-4


@pytest.mark.parametrize(
    "wrong", [Sampling(1.15), Sampling(1.0, top_k=7), Sampling(1.0, min_p=0.1)]
)
def test_the_statistic_tells_a_wrong_law_from_the_right_one(wrong: Sampling) -> None:
    logits = torch.linspace(0, 2.5, 8, dtype=torch.float64)
    assert p_value(drawn(logits, wrong), logits.softmax(-1)) < 1e-10


def test_noise_is_gumbel_noise() -> None:
    noise = gumbel(Sampling(1.0), 0, 0, 400, 500, CPU)
    assert noise is not None
    bins = torch.exp(-torch.exp(-noise)).flatten().mul(50).long()  # uniform under its own law
    assert p_value(torch.bincount(bins, minlength=50), torch.full((50,), 0.02)) > 1e-4
    for a, b in ((noise[:-1], noise[1:]), (noise[:, :-1], noise[:, 1:])):  # positions, tokens
        pair = torch.corrcoef(torch.stack((a.flatten(), b.flatten())))[0, 1]
        assert pair.abs() < 0.012


@given(
    st.integers(0, 2**63), st.integers(0, 10**6), st.integers(0, 500), st.integers(1, 9), st.data()
)
def test_a_positions_noise_does_not_depend_on_the_rows_it_is_made_with(
    seed: int, turn: int, position: int, rows: int, data: st.DataObject
) -> None:
    sampling = Sampling(1.0, seed=seed)
    block = gumbel(sampling, turn, position, rows, 30, CPU)
    row = data.draw(st.integers(0, rows - 1))
    alone = gumbel(sampling, turn, position + row, 1, 30, CPU)
    assert block is not None and alone is not None
    assert torch.equal(block[row], alone[0])


@given(st.tuples(*[st.integers(0, 5)] * 3), st.tuples(*[st.integers(0, 5)] * 3))
def test_seed_turn_and_position_each_change_the_noise(
    a: tuple[int, int, int], b: tuple[int, int, int]
) -> None:
    first, second = (
        gumbel(Sampling(1.0, seed=seed), turn, position, 1, 20, CPU)
        for seed, turn, position in (a, b)
    )
    assert first is not None and second is not None
    assert torch.equal(first, second) == (a == b)


def test_greedy_needs_no_noise_and_takes_the_likeliest() -> None:
    assert gumbel(Sampling(), 0, 0, 3, 10, CPU) is None
    assert choose(torch.tensor([[1.0, 3.0, 2.0], [9.0, 0.0, 1.0]]), Sampling(), None).tolist() == [
        1,
        0,
    ]


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


def test_half_precision_logits_are_warped_in_single_precision() -> None:
    assert warp(torch.zeros(1, 4, dtype=torch.bfloat16), Sampling(1.0)).dtype == torch.float32
