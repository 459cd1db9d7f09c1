"""A search for the most likely continuations, each up to a token that ends it.

It is a best-first search (Meister, Vieira and Cotterell 2020, Best-First Beam Search): the
likeliest beginnings so far are extended first, so whole continuations are found in about the order
of their probability. Several beginnings are extended in one pass, which takes hardly longer than a
pass for one. This module knows no models: the caller computes the logits of a growing tree.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from torch import Tensor

from voiceloop.llm.rules.tree import ROOT

AT_ONCE = 16
"""Maximum number of beginnings that are extended in one pass."""
SPREAD = 5.0
"""Maximum difference in log-probability between the beginnings of one pass. Where the model is
sure, a pass has few rows, and more passes can be made."""
WIDTH = 8
"""Number of next tokens, the likeliest ones, with which each beginning is extended."""

Tokens = tuple[int, ...]


class Found(NamedTuple):
    """A continuation that was found."""

    tokens: Tokens
    node: int
    """The node of the last token; `ROOT` if there is no token."""


Extend = Callable[[Sequence[int], Sequence[int]], Tensor]
"""Adds nodes to the tree, given the parent and the token of each; returns the logits after each,
[nodes, vocab]."""


def most_likely(
    root: Tensor, extend: Extend, end: int, *, count: int, rows: int
) -> Generator[None, None, list[Found]]:
    """Return at most `count` continuations without their `end`, likeliest first.

    No continuation is a prefix of a likelier one, as a text without its full stop would be. `root`
    are the logits after the text to continue, [vocab]. The search pauses after each pass. It
    extends beginnings until it has computed `rows` rows; continuations that are complete by then
    come last.
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
