"""The loop of speculative decoding on one screen, without caches, trees, penalties or cancellation.

Read this before `speculate`, which does the same work fast. The tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from torch import Tensor

from voiceloop.llm.rules.sampling import Noise, Sampling, choose, warp

Model = Callable[[Sequence[int]], Tensor]
"""A function that returns a row of logits after each of some ids, [ids, vocab]."""


def speculate(
    target: Model, draft: Model, ids: Sequence[int], tokens: int, k: int, sampling: Sampling
) -> list[int]:
    """Return the `tokens` tokens that `target` says after `ids`, whatever `draft` proposes.

    Each round has Algorithm 1 of Leviathan et al. 2023 (arXiv 2211.17192), with `k` draft tokens.
    Both models choose with the same noise at the same position (Daliri, Musco and Suresh 2024).
    """
    said = list[int]()

    def chosen(logits: Tensor, position: int) -> int:
        noise = Noise(sampling.seed, len(logits), logits.device)
        gumbel = noise.gumbel(noise.keys(1, position, 1)) if sampling.temperature else None
        return int(choose(warp(logits.unsqueeze(0), sampling), gumbel))

    while len(said) < tokens:
        x, known, at = list[int](), [*ids, *said], len(said)
        for i in range(k):  # propose: one pass of the draft for each token
            x.append(chosen(draft([*known, *x])[-1], at + i))
        rows = target([*known, *x])[-k - 1 :]  # verify: all of them in one pass
        own = [chosen(row, at + i) for i, row in enumerate(rows)]
        accepted = len([*takewhile(lambda pair: pair[0] == pair[1], zip(x, own, strict=False))])
        said += own[: accepted + 1]  # settle: those that are right, and one more
    return said[:tokens]
