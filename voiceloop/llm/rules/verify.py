"""Which draft tokens are accepted, and what the target says where they end.

Both rules are lossless: what is emitted has exactly the target's distribution. `p[i]` is that
distribution after i of the draft tokens, so there is one more row of it than there are draft
tokens, and a round that accepts n of them emits `tokens[: n + 1]`. The rules wait for no device; a
`Verifier` does so once for each pass. This module knows no models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.llm.rules.sampling import Noise, RandomStream, Sampling, choose, warp
from voiceloop.llm.rules.tree import ROOT, Tree, chain


@dataclass(frozen=True, slots=True)
class DraftTokens:
    """Tokens to be verified, in order; good until the draft is asked again."""

    tokens: Tensor
    """int64 [k], on the target's device."""
    q: Tensor | None = None
    """The distribution that each was drawn from, [k, vocab]; None if none was drawn, or nobody
    asks."""
    branches: Tree | None = None
    """Which of them follows which, if they are no chain."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def tree(self) -> Tree:
        """Which of them follows which."""
        return self.branches or chain(len(self))

    def __getitem__(self, part: slice) -> DraftTokens:
        assert self.branches is None, "what remains need not be a tree"
        return DraftTokens(self.tokens[part], None if self.q is None else self.q[part])


def coupled(x: Tensor, scores: Tensor, noise: Tensor | None) -> tuple[Tensor, Tensor]:
    """Drafter-invariant verification by Gumbel coupling (Daliri, Musco and Suresh 2024).

    The target chooses at every position with the noise that belongs to the position, and a draft
    token is accepted if it is that choice. Whatever is emitted is the target's own choice, so the
    output does not depend on the draft. Greedy decoding is the same rule without noise.

    The draft tokens `x` are int64 [k]; `scores` are the target's, [k + 1, vocab], and `noise` is
    Gumbel noise of that shape. Returns how many are accepted, int64 [1], and tokens, int64 [k + 1].
    """
    chosen = choose(scores, noise)
    return _leading(x == chosen[: len(x)]), chosen


def rejection(
    x: Tensor, p: Tensor, q: Tensor | None, u: Tensor, gumbel: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Speculative sampling (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2).

    The draft tokens `x` are int64 [k], `p` is [k + 1, vocab]. `q` [k, vocab] has the very rows that
    x were drawn from; None if they were not drawn: then q is 1 at the token. `u` [k] is uniform in
    (0, 1), and `gumbel(n)` is row n, [1, vocab], of Gumbel noise that nothing else depends on.
    Returns as `coupled` does.
    """
    if q is None:
        q = F.one_hot(x, p.shape[-1]).to(p.dtype)
    at = x.unsqueeze(1)
    ratio = p[:-1].gather(1, at) / q.gather(1, at)
    n = _leading(u < ratio.squeeze(1))  # accept x_i while u_i < p_i(x_i) / q_i(x_i)
    q = F.pad(q, (0, 0, 0, 1))  # nothing was drafted after the last: where all are accepted, q is 0
    rest = residual(p.index_select(0, n), q.index_select(0, n))
    t = choose(rest.log(), gumbel(n))  # t ~ norm(max(0, p - q)), or t ~ p where all are accepted
    return n, F.pad(x, (0, 1)).scatter(0, n, t)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """What p has more than q, unnormalised; p itself where rounding leaves nothing of that."""
    more = (p - q).clamp(min=0)
    return torch.where(more.sum(-1, keepdim=True) > 0, more, p)


def branching(
    x: Tensor, scores: Tensor, noise: Tensor | None, tree: Tree
) -> tuple[list[int], list[int]]:
    """The same rule for a tree (Miao et al. 2024, SpecInfer): from the root on, the target's choice
    is looked for among what follows.

    `x` are the nodes' tokens, int64 [nodes]; `scores` the target's after the root and after each
    node, [nodes + 1, vocab]; `noise` is that of each depth, [depth + 1 or more, vocab]. Waits for
    the device. Returns the nodes that are accepted, and the tokens: theirs and one more.
    """
    if noise is not None:
        noise = noise[[0, *(depth + 1 for depth in tree.depths)]]
    told = cast("list[int]", cast(Any, torch.cat((x, choose(scores, noise)))).tolist())
    drafted, chosen = told[: len(x)], told[len(x) :]
    path, token = list[int](), chosen[0]
    tokens, children = [token], tree.children(ROOT)
    while (node := next((at for at in children if drafted[at] == token), None)) is not None:
        token = chosen[node + 1]
        path.append(node)
        tokens.append(token)
        children = tree.children(node)
    return path, tokens


def _leading(accepted: Tensor) -> Tensor:
    """How many are true before the first that is not: int64 [1]."""
    return accepted.cumprod(0).sum(0, keepdim=True)


def _on_host(n: Tensor, tokens: Tensor) -> tuple[int, list[int]]:
    """How many are accepted, and what is decided. Nothing else in a round waits for the device."""
    count, *decided = cast(Any, torch.cat((n, tokens))).tolist()
    return count, decided[: count + 1]


class Verifier:
    """Verifies the draft tokens of one conversation by the rule that its `sampling` names.

    It has the random numbers for that, which depend on seed, turn and position. In rejection
    sampling it also remembers which distributions the first tokens of a turn came from: when the
    prompt changes, the old reply's tokens are verified again, as draft tokens.
    """

    def __init__(
        self, sampling: Sampling, vocab: int, device: torch.device, *, remembered: int
    ) -> None:
        """Of so many tokens of a turn the distribution is `remembered`."""
        self.sampling = sampling
        self._vocab, self._device = vocab, device
        self._own = self._noise = Noise(sampling.seed, vocab, device)
        self._remembered = remembered
        self._turn: int | None = None
        self._revision = 0
        """In rejection sampling, how often the turn's reply was begun again: what a token was
        accepted by must not decide on it twice."""
        self._drawn_from: dict[int, Tensor] = {}
        """In rejection sampling, the distribution that each of the turn's first tokens came from,
        by position."""

    def begin(self, turn: int, old: Sequence[int], position: int) -> DraftTokens:
        """A reply of the user's `turn` begins, or begins anew with its token number `position`.

        Returns what can be verified of `old`, the tokens that were decided there before.
        """
        anew, self._turn = turn == self._turn, turn
        self._noise = self._own
        x = torch.tensor(old, dtype=torch.long, device=self._device)
        if not self.sampling.rejects:
            return DraftTokens(x)
        self._revision = self._revision + 1 if anew else 0
        if not anew:
            self.forget()
        places = range(position, position + len(old))
        rows = [self._drawn_from[at] for at in takewhile(self._drawn_from.__contains__, places)]
        return DraftTokens(x[: len(rows)], torch.stack(rows) if rows else None)

    def noise(self, position: int, rows: int, *, drafting: bool = False) -> Tensor | None:
        """Gumbel noise to choose the turn's tokens from `position` on with: [rows, vocab].

        None where nobody chooses with it: in greedy decoding, and where only the target does in
        rejection sampling, which has numbers of its own.
        """
        if self.sampling.temperature == 0 or (self.sampling.rejects and not drafting):
            return None
        return self._noise.gumbel(self._keys(RandomStream.CHOICE, position, rows))

    def verify(
        self, logits: Tensor, draft: DraftTokens, noise: Tensor | None, position: int
    ) -> tuple[Sequence[int], list[int]]:
        """Which of `draft` are accepted, and the tokens that are decided: those and one more.

        `logits` [k + 1, vocab] are the target's, penalised; `noise` is for at least as many of the
        turn's tokens as may be decided, from `position` on.
        """
        scores = warp(logits, self.sampling)
        if draft.branches is not None:
            assert not self.sampling.rejects, "that rule is for chains"
            return branching(draft.tokens, scores, noise, draft.branches)
        if not self.sampling.rejects:
            noise = None if noise is None else noise[: len(scores)]
            n, tokens = _on_host(*coupled(draft.tokens, scores, noise))
            return range(n), tokens
        p = scores.softmax(-1)
        u = self._noise.uniform(self._keys(RandomStream.ACCEPT, position, len(draft)))
        keys = self._keys(RandomStream.RESIDUAL, position, len(draft) + 1)

        def gumbel(n: Tensor) -> Tensor:
            return self._noise.gumbel(keys.index_select(0, n.to(keys.device)))

        n, tokens = _on_host(*rejection(draft.tokens, p, draft.q, u, gumbel))
        self.remember(position, p[: n + 1])
        return range(n), tokens

    def choices(self, scores: Tensor, seeds: Sequence[int], positions: Sequence[int]) -> Tensor:
        """What replies with these `seeds` choose, each as the turn's token at its position, by
        their rows of `scores` [seeds, vocab], warped: int64 [seeds]."""
        assert not self.sampling.rejects, "what is chosen without a draft is another choice there"
        if self.sampling.temperature == 0:
            return choose(scores, None)
        assert self._turn is not None
        keys = [
            Noise(seed, self._vocab, self._device).keys(
                RandomStream.CHOICE, self._turn, position, 1
            )
            for seed, position in zip(seeds, positions, strict=True)
        ]
        return choose(scores, self._noise.gumbel(torch.cat(keys)))

    def follow(self, seed: int) -> None:
        """Draw what follows in this reply as one with another seed would."""
        self._noise = Noise(seed, self._vocab, self._device)

    def remember(self, position: int, p: Tensor) -> None:
        """The turn's tokens from `position` on were drawn from the rows of `p`, [tokens, vocab]."""
        self._drawn_from.update(zip(range(position, self._remembered), p.clone(), strict=False))

    def numbers(self, position: int, rows: int) -> dict[RandomStream, list[int]]:
        """The keys of the turn's tokens from `position` on, of every stream."""
        assert self._turn is not None
        return {
            stream: self._noise.numbers(stream, self._turn, position, rows, self._revision)
            for stream in RandomStream
        }

    def forget(self) -> None:
        """Forget which distributions tokens came from."""
        self._drawn_from.clear()

    def _keys(self, stream: RandomStream, position: int, rows: int) -> Tensor:
        assert self._turn is not None
        return self._noise.keys(stream, self._turn, position, rows, self._revision)
