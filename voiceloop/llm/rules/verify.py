"""Decide which draft tokens are accepted, and which token the target adds after them.

There are two rules, coupling and rejection. Both are lossless: the tokens of a round have exactly
the target's distribution. `p[i]` is the target's distribution after i draft tokens, so `p` has one
more row than there are draft tokens. A round that accepts n draft tokens gives `tokens[: n + 1]`.
The functions for chains do not wait for the device; a `Verifier` waits once in each pass. This
module knows no models.
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
    """Draft tokens to verify, in order. They are valid until the draft proposes again."""

    tokens: Tensor
    """The tokens, int64 [k], on the target's device."""
    q: Tensor | None = None
    """The distributions that the tokens were drawn from, [k, vocab]. None if the tokens were not
    drawn. Also None in coupled verification, which does not need them."""
    branches: Tree | None = None
    """The tree that the tokens form; None for a chain."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def tree(self) -> Tree:
        """The tree that the tokens form. A chain is a tree too."""
        return self.branches or chain(len(self))

    def __getitem__(self, part: slice) -> DraftTokens:
        assert self.branches is None, "what remains need not be a tree"
        return DraftTokens(self.tokens[part], None if self.q is None else self.q[part])


def coupled(x: Tensor, scores: Tensor, noise: Tensor | None) -> tuple[Tensor, Tensor]:
    """Verify a chain by Gumbel coupling (Daliri, Musco and Suresh 2024).

    The target chooses a token at every position, with the noise that belongs to the position. A
    draft token is accepted if the target has chosen the same token, and all draft tokens before it
    are accepted. All tokens of the result are the target's choices, so the result does not depend
    on the draft.

    `x` [k] are the draft tokens, int64. `scores` [k + 1, vocab] are the target's scores. `noise` is
    Gumbel noise, [k + 1, vocab]; None for greedy decoding. Returns the number of accepted tokens,
    int64 [1], and the target's choices, int64 [k + 1].
    """
    chosen = choose(scores, noise)
    return _leading(x == chosen[: len(x)]), chosen


def rejection(
    x: Tensor, p: Tensor, q: Tensor | None, u: Tensor, gumbel: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Verify a chain by rejection (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm
    2).

    `x` [k] are the draft tokens, int64. `p` [k + 1, vocab] are the target's distributions. `q` [k,
    vocab] are exactly the distributions that the draft tokens were drawn from. If they were not
    drawn, `q` is None, which means that q_i is 1 at x_i. `u` [k] is uniform in (0, 1). `gumbel(n)`
    returns row n, [1, vocab], of Gumbel noise that is used for nothing else.

    Returns the number n of accepted tokens, int64 [1], and tokens, int64 [k + 1]. The first n + 1
    of these tokens are decided.
    """
    if q is None:
        q = F.one_hot(x, p.shape[-1]).to(p.dtype)
    at = x.unsqueeze(1)
    ratio = p[:-1].gather(1, at) / q.gather(1, at)
    n = _leading(u < ratio.squeeze(1))  # accept x_i while u_i < p_i(x_i) / q_i(x_i)
    q = F.pad(q, (0, 0, 0, 1))  # if all are accepted, row n of q is 0
    rest = residual(p.index_select(0, n), q.index_select(0, n))
    t = choose(rest.log(), gumbel(n))  # t ~ norm(max(0, p - q)), or t ~ p where all are accepted
    return n, F.pad(x, (0, 1)).scatter(0, n, t)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """Return max(0, p - q), not normalised. If rounding makes a whole row 0, return that row of
    `p`."""
    more = (p - q).clamp(min=0)
    return torch.where(more.sum(-1, keepdim=True) > 0, more, p)


def branching(
    x: Tensor, scores: Tensor, noise: Tensor | None, tree: Tree
) -> tuple[list[int], list[int]]:
    """Verify a tree by Gumbel coupling (Miao et al. 2024, SpecInfer).

    The path begins at the root. At each node, the child whose token is the target's choice is
    accepted. The path ends where no child has that token.

    `x` [nodes] are the tokens of the nodes, int64. `scores` [nodes + 1, vocab] are the target's
    scores after the root and after each node. `noise` [depth + 1 or more, vocab] has a row for each
    depth; None for greedy decoding. Returns the accepted nodes, and the decided tokens: those of
    the accepted nodes and one more. This waits for the device.
    """
    if noise is not None:
        noise = noise[[0, *(depth + 1 for depth in tree.depths)]]
    on_host = cast("list[int]", cast(Any, torch.cat((x, choose(scores, noise)))).tolist())
    drafted, chosen = on_host[: len(x)], on_host[len(x) :]
    path, token = list[int](), chosen[0]
    tokens, children = [token], tree.children(ROOT)
    while (node := next((at for at in children if drafted[at] == token), None)) is not None:
        token = chosen[node + 1]
        path.append(node)
        tokens.append(token)
        children = tree.children(node)
    return path, tokens


def _leading(accepted: Tensor) -> Tensor:
    """Count the true values before the first false one, int64 [1]."""
    return accepted.cumprod(0).sum(0, keepdim=True)


def _on_host(n: Tensor, tokens: Tensor) -> tuple[int, list[int]]:
    """Copy the number of accepted tokens and the decided tokens to the host. This is the only wait
    for the device in a round."""
    count, *decided = cast(Any, torch.cat((n, tokens))).tolist()
    return count, decided[: count + 1]


class Verifier:
    """Verifies the draft tokens of one conversation by the rule that `sampling` names.

    Its random numbers depend on seed, turn and position. In rejection sampling it also keeps the
    distributions that the first tokens of a turn were drawn from. They are needed when the prompt
    changes and the old reply's tokens are verified again, as draft tokens.
    """

    def __init__(
        self, sampling: Sampling, vocab: int, device: torch.device, *, remembered: int
    ) -> None:
        """Keep the distributions of the first `remembered` tokens of each turn."""
        self.sampling = sampling
        self._vocab, self._device = vocab, device
        self._own = self._noise = Noise(sampling.seed, vocab, device)
        self._remembered = remembered
        self._turn: int | None = None
        self._revision = 0
        """The number of times that the turn's reply was begun again, in rejection sampling. Each
        time the reply gets new random numbers, because the old ones have already decided on its
        tokens."""
        self._drawn_from: dict[int, Tensor] = {}
        """The distributions that the turn's first tokens were drawn from, by position, in rejection
        sampling."""

    def begin(self, turn: int, old: Sequence[int], position: int) -> DraftTokens:
        """Begin a reply to the user's `turn`, or begin it again from the turn's token `position`
        on.

        `old` are the tokens from `position` on that were decided for the earlier prompt. Return the
        beginning of `old` that can be verified as draft tokens.
        """
        again, self._turn = turn == self._turn, turn
        self._noise = self._own
        x = torch.tensor(old, dtype=torch.long, device=self._device)
        if not self.sampling.rejects:
            return DraftTokens(x)
        self._revision = self._revision + 1 if again else 0
        if not again:
            self.forget()
        places = range(position, position + len(old))
        rows = [self._drawn_from[at] for at in takewhile(self._drawn_from.__contains__, places)]
        return DraftTokens(x[: len(rows)], torch.stack(rows) if rows else None)

    def noise(self, position: int, rows: int, *, drafting: bool = False) -> Tensor | None:
        """Return Gumbel noise for the turn's tokens from `position` on, [rows, vocab].

        The noise is for the draft with `drafting`, otherwise for the target. None if no noise is
        used: in greedy decoding, and for the target in rejection sampling, which uses other random
        numbers.
        """
        if self.sampling.temperature == 0 or (self.sampling.rejects and not drafting):
            return None
        return self._noise.gumbel(self._keys(RandomStream.CHOICE, position, rows))

    def verify(
        self, logits: Tensor, draft: DraftTokens, noise: Tensor | None, position: int
    ) -> tuple[Sequence[int], list[int]]:
        """Return the accepted nodes of `draft`, and the decided tokens: the accepted draft tokens
        and one more.

        `logits` [k + 1, vocab] are the target's logits after penalties. `noise` is for the turn's
        tokens from `position` on, with at least one row for each token that may be decided; None as
        from `Verifier.noise`.
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
        """Choose the next token of each of several replies to the turn. Return the tokens, int64
        [replies].

        Reply i has the seed `seeds[i]`. Its next token has the index `positions[i]` among the
        turn's tokens, and the scores in row i of `scores` [replies, vocab], which come from `warp`.
        """
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
        """Draw the rest of this reply with another `seed`."""
        self._noise = Noise(seed, self._vocab, self._device)

    def remember(self, position: int, p: Tensor) -> None:
        """Keep the distributions `p` [tokens, vocab] of the turn's tokens from `position` on.
        Tokens after the turn's first `remembered` ones are left out."""
        self._drawn_from.update(zip(range(position, self._remembered), p.clone(), strict=False))

    def numbers(self, position: int, rows: int) -> dict[RandomStream, list[int]]:
        """Return the keys of the random numbers for `rows` tokens of the turn from `position` on,
        for every stream."""
        assert self._turn is not None
        return {
            stream: self._noise.numbers(stream, self._turn, position, rows, self._revision)
            for stream in RandomStream
        }

    def forget(self) -> None:
        """Forget the distributions that tokens were drawn from."""
        self._drawn_from.clear()

    def _keys(self, stream: RandomStream, position: int, rows: int) -> Tensor:
        assert self._turn is not None
        return self._noise.keys(stream, self._turn, position, rows, self._revision)
