"""Search for the most likely continuations of a text, each up to a token that ends it.

This is a best-first search (Meister, Vieira and Cotterell 2020, Best-First Beam Search). A
beginning is the first tokens of a continuation. The likeliest beginnings so far are extended first,
so continuations are completed in about the order of their probability. Several beginnings are
extended in one pass, which takes hardly longer than a pass for one. This module knows no models:
the caller computes the logits of a growing tree.
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
"""Maximum difference in log-probability between the beginnings that are extended in one pass. If
the model is sure of the next token, few beginnings are within it, so a pass has few rows and more
passes can be made."""
WIDTH = 8
"""Number of tokens with which each beginning is extended: the likeliest next ones."""

Tokens = tuple[int, ...]


class Found(NamedTuple):
    """A continuation that was found."""

    tokens: Tokens
    node: int
    """The node of the last token; `ROOT` if there are no tokens."""


Extend = Callable[[Sequence[int], Sequence[int]], Tensor]
"""The type of a function that adds nodes to the tree. Its arguments are the parent and the token of
each new node. It returns the logits after each new node, [nodes, vocab]."""


def most_likely(
    root: Tensor, extend: Extend, end: int, *, count: int, rows: int
) -> Generator[None, None, list[Found]]:
    """Return at most `count` continuations, the likeliest first. Their last token `end` is left
    out.

    `root` are the logits after the text to continue, [vocab]. A continuation is left out if a
    likelier one begins with it. For example, a text without its full stop is left out after the
    text with it. The search pauses after each pass. After `rows` rows no beginnings are extended
    any more; the continuations that are complete by then are still returned.
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
        if not chosen:  # no rows are left, so only complete continuations are taken
            continue
        logits = extend([node for _, _, node in chosen], [ids[-1] for _, ids, _ in chosen])
        for (cost, ids, _), after in zip(chosen, logits, strict=True):
            add(cost, ids, nodes, after)
            nodes += 1
        yield None
    return found
