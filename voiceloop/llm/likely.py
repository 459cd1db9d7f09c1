"""What most likely follows, up to the token that ends it.

Best-first search: of all beginnings that are known the likeliest is extended first, so that whole
continuations come in the order of their probability (Meister, Vieira and Cotterell 2020, Best-First
Beam Search). This module knows no models: whoever searches says what follows a beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from torch import Tensor

WIDTH = 8
"""Tokens with which a beginning is extended: none that is less likely is among the first few."""


def most_likely(
    after: Callable[[tuple[int, ...]], Tensor], end: int, passes: int, longest: int
) -> Iterator[tuple[int, ...] | None]:
    """Continuations of at most `longest` tokens, without the `end` that follows, likeliest first.

    `after` gives logits, [vocab], after a beginning; it is called at most `passes` times, and None
    comes after each. Those that are known to be whole by then come last.
    """
    beginnings: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    while beginnings:
        cost, ids = heappop(beginnings)
        if ids and ids[-1] == end:
            yield ids[:-1]
        elif passes and len(ids) <= longest:
            passes -= 1
            best = after(ids).float().log_softmax(-1).topk(WIDTH)
            for score, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                heappush(beginnings, (cost - score, (*ids, token)))
            yield None
