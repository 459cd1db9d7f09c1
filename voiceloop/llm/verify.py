"""Which guesses stand, and what the target says where they end.

Both rules are lossless: what is emitted has exactly the target's law. `p[i]` is the target's law
after i of the guesses, so there is one more row of it than there are guesses, and a round that
accepts n of them emits `tokens[: n + 1]`. Nothing here waits for the device. This module knows
neither models nor where random numbers come from.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.llm.sampling import choose


def coupled(guesses: Tensor, scores: Tensor, noise: Tensor | None) -> tuple[Tensor, Tensor]:
    """Drafter-invariant verification by Gumbel coupling (Daliri, Musco and Suresh 2024).

    The target chooses at every position with the noise that belongs to the position, and a guess
    stands if it is that choice. Whatever is emitted is the target's own choice, so the output does
    not depend on the draft. Greedy decoding is the same rule without noise.

    `guesses` is int64 [k]; `scores` are the target's, [k + 1, vocab], and `noise` is Gumbel noise
    of that shape. Returns the number of guesses that stand, int64 [1], and tokens, int64 [k + 1].
    """
    chosen = choose(scores, noise)
    return _leading(guesses == chosen[: len(guesses)]), chosen


def rejection(
    guesses: Tensor,
    p: Tensor,
    q: Tensor | None,
    u: Tensor,
    gumbel: Callable[[Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """Speculative sampling (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2).

    `guesses` x is int64 [k], `p` [k + 1, vocab]. `q` [k, vocab] has the very rows that the guesses
    were drawn from; None if they were not drawn: then q is 1 at the guess. `u` [k] is uniform in
    (0, 1), and `gumbel(n)` is row n, [1, vocab], of Gumbel noise that nothing else depends on.
    Returns as `coupled` does.
    """
    if q is None:
        q = F.one_hot(guesses, p.shape[-1]).to(p.dtype)
    x = guesses.unsqueeze(1)
    ratio = p[:-1].gather(1, x) / q.gather(1, x)
    n = _leading(u < ratio.squeeze(1))  # accept x_i while u_i < p_i(x_i) / q_i(x_i)
    q = F.pad(q, (0, 0, 0, 1))  # nothing was guessed after the last: where all stand, q is 0
    law = residual(p.index_select(0, n), q.index_select(0, n))
    t = choose(law.log(), gumbel(n))  # t ~ norm(max(0, p - q)), or t ~ p where all stand
    return n, F.pad(guesses, (0, 1)).scatter(0, n, t)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """What p has more than q, unnormalised; p itself where rounding leaves nothing of that."""
    more = (p - q).clamp(min=0)
    return torch.where(more.sum(-1, keepdim=True) > 0, more, p)


def _leading(stands: Tensor) -> Tensor:
    """How many are true before the first that is not: int64 [1]."""
    return stands.cumprod(0).sum(0, keepdim=True)
