"""Verification is lossless: what is emitted has the target's distribution; planted faults show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.llm.distributions import p_value
from voiceloop.llm.rules.verify import coupled, rejection, residual

pytestmark = pytest.mark.pure
N = 20_000
Rule = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Of one round: tokens x [k], p [k + 1, vocab], q [k, vocab], u [k] and noise [k + 1, vocab]."""


def by_rejection(
    x: Tensor, p: Tensor, q: Tensor | None, u: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    return rejection(x, p, q, u, lambda n: noise.index_select(0, n))


def distributions(generator: torch.Generator, *shape: int, zeros: float = 0.0) -> Tensor:
    """Random ones along the last axis; to a share of tokens, never the first, they give nothing."""
    weights = torch.rand(*shape, generator=generator, dtype=torch.float64) ** 3 + 1e-3
    gone = torch.rand(*shape, generator=generator) < zeros
    gone[..., 0] = False
    weights = weights.masked_fill(gone, 0)
    return weights / weights.sum(-1, keepdim=True)


def gumbel(generator: torch.Generator, *shape: int) -> Tensor:
    return -torch.empty(*shape, dtype=torch.float64).exponential_(generator=generator).log()


def draw(rows: Tensor, generator: torch.Generator) -> Tensor:
    """A token from each of `rows`."""
    return (rows.log() + gumbel(generator, *rows.shape)).argmax(-1)


# ---- one position


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=["double", "single"]
)
def test_what_is_accepted_and_what_replaces_the_rest_add_up_to_the_targets_distribution(
    dtype: torch.dtype, bound: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    p = distributions(generator, 1000, 16, zeros=0.3).to(dtype)
    q = distributions(generator, 1000, 16, zeros=0.3).to(dtype)
    q[:100] = p[:100]
    q[100:200] = F.one_hot(torch.arange(100) % 16, 16)
    p[200:300] = F.one_hot(torch.arange(100) % 16, 16)
    accepted = torch.minimum(p, q)  # q min(1, p / q)
    rest = residual(p, q)
    emitted = accepted + (1 - accepted.sum(-1, keepdim=True)) * rest / rest.sum(-1, keepdim=True)
    assert (emitted - p).abs().max() <= bound
    assert torch.equal(rest[:100], p[:100])  # nothing is left over


@given(st.integers(0, 99), st.integers(0, 4))
def test_a_draft_token_is_accepted_below_the_ratio_and_not_at_it(seed: int, token: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    p, q = distributions(generator, 2, 5, zeros=0.4), distributions(generator, 1, 5)
    x, noise = torch.tensor([token]), gumbel(generator, 2, 5)
    ratio = p[0, token] / q[0, token]
    for u, count in ((ratio, 0), (ratio * (1 + 1e-9), 0), (ratio * (1 - 1e-9), int(ratio > 0))):
        n, tokens = by_rejection(x, p, q, u.view(1), noise)
        assert n.item() == count
        assert p[count, tokens[count]] > 0


def test_where_the_distributions_are_equal_a_rejected_token_is_replaced_by_the_target() -> None:
    p = torch.tensor([[0.0, 0.5, 0.5]]).expand(2, 3)
    for token in (1, 2):
        n, tokens = by_rejection(torch.tensor([token]), p, p[:1], torch.ones(1), torch.zeros(2, 3))
        assert n.item() == 0 and tokens[0].item() in (1, 2)


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
    """A target and a draft over two tokens, the second depending on the first."""

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

    def drafted(self, greedy: bool = False) -> Tensor:
        """Two draft tokens for each of N rounds, [N, 2]."""

        def pick(rows: Tensor) -> Tensor:
            return rows.argmax(-1) if greedy else draw(rows, self.generator)

        first = pick(self.q[0].expand(N, -1))
        return torch.stack((first, pick(self.q[1][first])), 1)

    def rows(self, model: list[Tensor], x: Tensor) -> Tensor:
        """Its distributions after no, one and two draft tokens: [N, 3, vocab]."""
        first, second = x.unbind(1)
        after = model[0].expand(N, -1), model[1][first], model[2][first, second]
        return torch.stack(after, 1)

    def emitted(self, rule: Rule, x: Tensor, p: Tensor, q: Tensor) -> Tensor:
        """The first two tokens of N rounds, and how many were accepted: [N, 3].

        A round that gave only one is followed by plain decoding.
        """
        u = torch.rand(x.shape, generator=self.generator, dtype=torch.float64)
        noise = gumbel(self.generator, *p.shape)
        n, tokens = torch.vmap(rule)(x, p, q, u, noise)
        second = draw(self.p[1][tokens[:, 0]], self.generator)
        second = torch.where(n[:, 0] > 0, tokens[:, 1], second)
        return torch.stack((tokens[:, 0], second, n[:, 0]), 1)

    def fit(self, emitted: Tensor) -> float:
        """P-value of the first two tokens under the target's joint distribution."""
        vocab = len(self.p[0])
        joint = self.p[0].unsqueeze(1) * self.p[1]
        counts = torch.bincount(emitted[:, 0] * vocab + emitted[:, 1], minlength=vocab**2)
        return p_value(counts, joint.flatten())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("vocab", [8, 16, 32])
def test_rejection_emits_the_targets_distribution(vocab: int, seed: int) -> None:
    game = Game.of(vocab, seed)
    x = game.drafted()
    p, q = game.rows(game.p, x), game.rows(game.q, x)[:, :2]
    emitted = game.emitted(by_rejection, x, p, q)
    assert set(emitted[:, 2].tolist()) == {0, 1, 2}
    assert game.fit(emitted) > 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_draft_tokens_that_were_not_drawn_leave_the_distribution_as_it_is(seed: int) -> None:
    game = Game.of(8, seed)
    x = game.drafted(greedy=True)
    delta = F.one_hot(x, 8).double()
    emitted = game.emitted(by_rejection, x, game.rows(game.p, x), delta)
    assert len(emitted[:, 2].unique()) > 1
    assert game.fit(emitted) > 1e-4


def test_no_row_of_q_is_a_row_that_is_one_at_the_token() -> None:
    game = Game.of(8, 0)
    for x in game.drafted()[:20]:
        p = game.rows(game.p, x.expand(N, -1))[0]
        u, noise = torch.rand(2, generator=game.generator), gumbel(game.generator, 3, 8)
        delta = F.one_hot(x, 8).double()
        without, given_ = (by_rejection(x, p, q, u, noise) for q in (None, delta))
        assert all(map(torch.equal, without, given_))


@pytest.mark.parametrize("seed", range(3))
def test_coupling_emits_the_targets_distribution(seed: int) -> None:
    game = Game.of(8, seed)
    noise = gumbel(game.generator, N, 3, 8)
    first = (game.q[0].log() + noise[:, 0]).argmax(-1)
    second = (game.q[1][first].log() + noise[:, 1]).argmax(-1)
    x = torch.stack((first, second), 1)

    def rule(x: Tensor, p: Tensor, q: Tensor, u: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        return coupled(x, p.log(), row)

    p = game.rows(game.p, x)
    n, tokens = torch.vmap(rule)(x, p, p, p, noise)
    own = (game.p[1][tokens[:, 0]].log() + noise[:, 1]).argmax(-1)  # the next round's first
    emitted = torch.stack((tokens[:, 0], torch.where(n[:, 0] > 0, tokens[:, 1], own), n[:, 0]), 1)
    assert set(n.flatten().tolist()) == {0, 1, 2}
    assert game.fit(emitted) > 1e-4


# ---- planted faults: the same test has to find them


def without_residual(
    x: Tensor, p: Tensor, q: Tensor, u: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """A rejected token is replaced by a token from p."""
    n, tokens = by_rejection(x, p, q, u, noise)
    return n, torch.where(torch.arange(len(p)) == n, (p.log() + noise).argmax(-1), tokens)


def dropping_the_unsure(
    x: Tensor, p: Tensor, q: Tensor, u: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """The only draft token is not verified where the draft is unsure of it."""
    n, tokens = by_rejection(x, p, q, u, noise)
    unsure = q.gather(1, x.unsqueeze(1))[0] < 0.2
    return n * ~unsure, torch.where(unsure, (p.log() + noise).argmax(-1), tokens)


def planted(fault: str) -> float:
    """The p-value of rounds with a fault in them."""
    game = Game.of(8, 0)
    x = game.drafted(greedy=fault == "argmax")  # and the softmax is handed in as q
    p, q = game.rows(game.p, x), game.rows(game.q, x)[:, :2]
    rule: Rule = by_rejection
    match fault:
        case "bonus":  # the token after the last of the draft's comes from the draft, too
            x, p, q = x[:, :1], torch.stack((p[:, 0], q[:, 1]), 1), q[:, :1]
        case "dropped":
            rule, x, p, q = dropping_the_unsure, x[:, :1], p[:, :2], q[:, :1]
        case "residual":
            rule = without_residual
        case "penalty":  # worked out once a round: the second row knows nothing of x_1
            game.p[1] = game.p[1] * (1 - 0.9 * torch.eye(8))
            game.p[1] /= game.p[1].sum(-1, keepdim=True)
    return game.fit(game.emitted(rule, x, p, q))


@pytest.mark.parametrize("fault", ["argmax", "dropped", "residual", "bonus", "penalty"])
def test_the_statistic_finds_a_planted_fault(fault: str) -> None:
    assert planted(fault) < 1e-10 < 1e-4 < planted("none")


# ---- how many are accepted


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["coupled", "rejection"])
def test_how_many_are_accepted_is_geometric_where_distributions_do_not_change(
    mode: str, seed: int
) -> None:
    generator, k, vocab = torch.Generator().manual_seed(seed), 4, 8
    p, q = distributions(generator, vocab), distributions(generator, vocab)
    noise, more = (gumbel(generator, N, k + 1, vocab) for _ in range(2))
    x = (q.log() + noise[:, :k]).argmax(-1)
    u = torch.rand(N, k, generator=generator, dtype=torch.float64)
    rows = p.expand(N, k + 1, vocab)
    if mode == "coupled":
        # Of two distributions with the same noise (Daliri et al. 2024, section 3).
        larger = torch.maximum(p / p.unsqueeze(1), q / q.unsqueeze(1))
        rate = (1 / larger.sum(-1)).sum()
        n, _ = torch.vmap(coupled)(x, rows.log(), noise)
    else:
        rate = torch.minimum(p, q).sum()
        n, _ = torch.vmap(by_rejection)(x, rows, q.expand(N, k, vocab), u, more)
    geometric = rate ** torch.arange(k + 1) * (1 - rate)
    geometric[k] = rate**k
    assert 0.1 < rate < 0.95
    assert p_value(torch.bincount(n.flatten(), minlength=k + 1), geometric) > 1e-4
