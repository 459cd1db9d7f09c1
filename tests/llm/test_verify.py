"""Verification is lossless: what is emitted has the target's distribution; planted faults show."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.llm.distributions import p_value
from voiceloop.llm.rules.verify import coupled

pytestmark = pytest.mark.pure
N = 20_000


def distributions(generator: torch.Generator, *shape: int, zeros: float = 0.0) -> Tensor:
    """Random ones along the last axis; to a share of tokens, never the first, they give nothing."""
    weights = torch.rand(*shape, generator=generator, dtype=torch.float64) ** 3 + 1e-3
    gone = torch.rand(*shape, generator=generator) < zeros
    gone[..., 0] = False
    weights = weights.masked_fill(gone, 0)
    return weights / weights.sum(-1, keepdim=True)


def gumbel(generator: torch.Generator, *shape: int) -> Tensor:
    return -torch.empty(*shape, dtype=torch.float64).exponential_(generator=generator).log()


@given(st.lists(st.integers(0, 2), max_size=8), st.data())
def test_exactly_the_longest_common_beginning_is_coupled(x: list[int], data: st.DataObject) -> None:
    rows = len(x) + 1
    chosen = data.draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    scores = F.one_hot(torch.tensor(chosen), 3).double()
    n, tokens = coupled(torch.tensor(x, dtype=torch.long), scores, None)
    accepted = int(n)
    assert tokens.tolist() == chosen
    assert x[:accepted] == chosen[:accepted]
    assert accepted == len(x) or x[accepted] != chosen[accepted]


# ---- two positions: how what a round and plain decoding after it emit is distributed


@dataclass
class Game:
    """A target and a draft over tokens of which each depends on those before."""

    p: list[Tensor]
    """The target's distributions after no token, [vocab]; one, [vocab, vocab]; and two."""
    q: list[Tensor]
    generator: torch.Generator

    @classmethod
    def of(cls, vocab: int, seed: int) -> Game:
        generator = torch.Generator().manual_seed(seed)
        shapes = (vocab,), (vocab, vocab), (vocab, vocab, vocab)
        p = [distributions(generator, *shape, zeros=0.2) for shape in shapes]
        return cls(p, [distributions(generator, *shape) for shape in shapes], generator)

    def emitted(self, fault: str = "none") -> Tensor:
        """The first two tokens of N rounds, and how many were accepted: [N, 3]. A round that gave
        only one is followed by plain decoding."""
        noise = gumbel(self.generator, N, 3, len(self.p[0]))
        first = (self.q[0].log() + noise[:, 0]).argmax(-1)
        second = (self.q[1][first].log() + noise[:, 1]).argmax(-1)
        x = torch.stack((first, second), 1)
        after = self.p[0].expand(N, -1), self.p[1][first], self.p[2][first, second]
        p = torch.stack(after, 1)
        if fault == "stale":  # worked out once a round: the second row knows nothing of x_1
            p[:, 1] = self.p[1][0]
        n, tokens = torch.vmap(coupled)(x, p.log(), noise)
        n = n[:, 0]
        if fault == "kept":  # the first draft token is not verified
            n, tokens[:, 0] = n.clamp(min=1), first
        own = (self.p[1][tokens[:, 0]].log() + noise[:, 1]).argmax(-1)  # the next round's first
        if fault == "noise used twice":
            own = (self.p[1][tokens[:, 0]].log() + noise[:, 0]).argmax(-1)
        return torch.stack((tokens[:, 0], torch.where(n > 0, tokens[:, 1], own), n), 1)

    def fit(self, emitted: Tensor) -> float:
        """P-value of the first two tokens under the target's joint distribution."""
        vocab = len(self.p[0])
        joint = self.p[0].unsqueeze(1) * self.p[1]
        counts = torch.bincount(emitted[:, 0] * vocab + emitted[:, 1], minlength=vocab**2)
        return p_value(counts, joint.flatten())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("vocab", [8, 16])
def test_coupling_emits_the_targets_distribution(vocab: int, seed: int) -> None:
    game = Game.of(vocab, seed)
    emitted = game.emitted()
    assert set(emitted[:, 2].tolist()) == {0, 1, 2}
    assert game.fit(emitted) > 1e-4


@pytest.mark.parametrize("fault", ["stale", "kept", "noise used twice"])
def test_the_statistic_finds_a_planted_fault(fault: str) -> None:
    game = Game.of(8, 0)
    assert game.fit(game.emitted(fault)) < 1e-10


# ---- how many are accepted
