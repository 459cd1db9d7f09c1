"""What most likely follows, up to the token that ends it.

Best-first search: of all beginnings that are known the likeliest are extended first, so that whole
continuations are found in about the order of their probability (Meister, Vieira and Cotterell 2020,
Best-First Beam Search), a few at a time, since a pass over several rows takes hardly longer. This
module knows no models: whoever searches says what follows the nodes of a growing tree.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from torch import Tensor

from voiceloop.llm.rules.tree import ROOT

AT_ONCE = 16
"""Beginnings that are extended in one pass."""
SPREAD = 5.0
"""Those that are extended with the likeliest are at most e to so much less likely: where the model
is sure, a pass is over few rows, and more passes can be made."""
WIDTH = 8
"""Tokens with which one is extended: none that is less likely is among the first few."""

Tokens = tuple[int, ...]


class Found(NamedTuple):
    """A continuation."""

    tokens: Tokens
    node: int
    """The last of them in the tree; `ROOT` where there is none."""


Extend = Callable[[Sequence[int], Sequence[int]], Tensor]
"""Adds nodes to the tree, numbered on, by what each follows and its token; gives the logits after
each, [nodes, vocab]."""


def most_likely(
    root: Tensor, extend: Extend, end: int, *, count: int, rows: int
) -> Generator[None, None, list[Found]]:
    """At most so many continuations, without the `end` that follows each, likeliest first; none
    that is but the beginning of a likelier one, as a text is without its full stop.

    `root` are the logits after what is continued, [vocab]. It pauses after each pass, and makes
    some until so many `rows` have been computed; what is known to be whole by then comes last.
    """
    beginnings: list[tuple[float, Tokens, int]] = []
    found: list[Found] = []
    begun = set[Tokens]()
    nodes = 0

    def add(cost: float, ids: Tokens, node: int, logits: Tensor) -> None:
        best = logits.float().log_softmax(-1).topk(WIDTH)
        for score, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            heappush(beginnings, (cost - score, (*ids, token), node))

    add(0.0, (), ROOT, root)
    while beginnings and len(found) < count:
        if beginnings[0][1][-1] == end:
            _, (*ids, _), node = heappop(beginnings)
            if tuple(ids) not in begun:
                found.append(Found(tuple(ids), node))
                begun.update(tuple(ids[:length]) for length in range(len(ids)))
            continue
        whole: list[tuple[float, Tokens, int]] = []
        chosen: list[tuple[float, Tokens, int]] = []
        unlikely = beginnings[0][0] + SPREAD
        while beginnings and len(chosen) < AT_ONCE and beginnings[0][0] <= unlikely:
            one = heappop(beginnings)
            (whole if one[1][-1] == end else chosen).append(one)
        for one in whole:
            heappush(beginnings, one)
        chosen = chosen[: rows - nodes]
        if not chosen:  # no more beginnings are extended
            continue
        logits = extend([node for _, _, node in chosen], [ids[-1] for _, ids, _ in chosen])
        for (cost, ids, _), after in zip(chosen, logits, strict=True):
            add(cost, ids, nodes, after)
            nodes += 1
        yield None
    return found
