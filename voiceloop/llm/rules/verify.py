"""Decides which draft tokens are accepted, and which token the target adds after them.

The rule is lossless: the tokens of a round have exactly the target's distribution, and are the same
with any draft. There is one row of scores more than there are draft tokens. A round that accepts n
draft tokens gives `tokens[: n + 1]`.
The functions for chains do not wait for the device; a `Verifier` waits once in each pass. This
module knows no models.

In a tree of draft tokens each node is a token that follows its parent. A pass over a tree verifies
several tokens for the same position at once: each row attends only to its ancestors and itself
(Miao et al. 2024, SpecInfer, arXiv 2305.09781). A chain is a tree without branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, cast

import torch
from torch import Tensor

from voiceloop.llm.rules.sampling import Noise, Sampling, choose, warp

ROOT = -1
"""The parent of all nodes at depth 0. It is not a node itself."""


@dataclass(frozen=True)
class Tree:
    """A tree. Its nodes have the numbers 0, 1, …; a parent has a lower number than its children.
    The root is not a node."""

    parents: tuple[int, ...]
    """The parent of each node; `ROOT` at depth 0."""

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """The depth of each node: the number of nodes between it and the root."""
        return tuple(len(path) - 1 for path in self.paths)

    @cached_property
    def depth(self) -> int:
        """The number of nodes on the longest path."""
        return max(self.depths, default=-1) + 1

    @cached_property
    def is_chain(self) -> bool:
        """Whether the tree has no branches."""
        return self.depth == len(self)

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The nodes of each depth, from 0 on."""
        return tuple(
            tuple(node for node, depth in enumerate(self.depths) if depth == level)
            for level in range(self.depth)
        )

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """The rank of each node: how many of its siblings have lower numbers."""
        return tuple(self.parents[:node].count(parent) for node, parent in enumerate(self.parents))

    def children(self, node: int) -> tuple[int, ...]:
        """Return the children of `node`, which may be `ROOT`, in order of their ranks."""
        return self._children.get(node, ())

    @cached_property
    def _children(self) -> dict[int, tuple[int, ...]]:
        found = dict[int, tuple[int, ...]]()
        for node, parent in enumerate(self.parents):
            found[parent] = (*found.get(parent, ()), node)
        return found

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The path to each node: its ancestors from depth 0 on, then the node itself."""
        paths = list[tuple[int, ...]]()
        for node, parent in enumerate(self.parents):
            paths.append((node,) if parent == ROOT else (*paths[parent], node))
        return tuple(paths)

    @cached_property
    def inner(self) -> tuple[int, ...]:
        """The nodes that have children."""
        return tuple(node for node in range(len(self)) if node in self._children)

    def below(self, node: int) -> int:
        """Return the number of nodes on the path from `node` down to a leaf that always goes to the
        first child. `node` and the leaf count too."""
        return 1 + (self.below(self.children(node)[0]) if self.children(node) else 0)

    def cut(self, depth: int) -> Tree:
        """Return the tree of the nodes whose depth is less than `depth`."""
        if self.depth <= depth:
            return self
        return self.only([node for node, at in enumerate(self.depths) if at < depth])

    def only(self, nodes: Sequence[int]) -> Tree:
        """Return the tree of `nodes` alone, renumbered from 0.

        The parent of each of `nodes` must be among `nodes` and come before it, or be `ROOT`.
        """
        numbers = {node: number for number, node in enumerate(nodes)} | {ROOT: ROOT}
        return Tree(tuple(numbers[self.parents[node]] for node in nodes))


@cache
def chain(length: int) -> Tree:
    """Return a tree of `length` nodes without branches."""
    return Tree(tuple(range(ROOT, length + ROOT)))


@dataclass(frozen=True, slots=True)
class DraftTokens:
    """Draft tokens to verify, in order. They are valid until the draft proposes again."""

    tokens: Tensor
    """The tokens, int64 [k], on the target's device."""
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
        return DraftTokens(self.tokens[part])


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
    accepted = x == chosen[: len(x)]
    return accepted.cumprod(0).sum(0, keepdim=True), chosen  # those before the first false one


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


class Verifier:
    """Verifies the draft tokens of one conversation. Its random numbers depend on seed, turn and
    position."""

    def __init__(self, sampling: Sampling, vocab: int, device: torch.device) -> None:
        self.sampling = sampling
        self._vocab, self._device = vocab, device
        self._own = self._noise = Noise(sampling.seed, vocab, device)
        self._turn: int | None = None

    def begin(self, turn: int) -> None:
        """Begin a reply to the user's `turn`, or begin it again."""
        self._turn, self._noise = turn, self._own

    def noise(self, position: int, rows: int) -> Tensor | None:
        """Return Gumbel noise for the turn's tokens from `position` on, [rows, vocab]. The draft
        uses the same. None in greedy decoding, which uses none."""
        if self.sampling.temperature == 0:
            return None
        assert self._turn is not None
        return self._noise.gumbel(self._noise.keys(self._turn, position, rows))

    def verify(
        self, logits: Tensor, draft: DraftTokens, noise: Tensor | None
    ) -> tuple[Sequence[int], list[int]]:
        """Return the accepted nodes of `draft`, and the decided tokens: the accepted draft tokens
        and one more.

        `logits` [k + 1, vocab] are the target's logits after penalties. `noise` has at least one
        row for each token that may be decided; None as from `Verifier.noise`.
        """
        scores = warp(logits, self.sampling)
        if draft.branches is not None:
            return branching(draft.tokens, scores, noise, draft.branches)
        noise = None if noise is None else noise[: len(scores)]
        # The only wait for the device in a round.
        n, *tokens = cast(Any, torch.cat(coupled(draft.tokens, scores, noise))).tolist()
        return range(n), tokens[: n + 1]

    def choices(self, scores: Tensor, seeds: Sequence[int], positions: Sequence[int]) -> Tensor:
        """Choose the next token of each of several replies to the turn. Return the tokens, int64
        [replies].

        Reply i has the seed `seeds[i]`. Its next token has the index `positions[i]` among the
        turn's tokens, and the scores in row i of `scores` [replies, vocab], which come from `warp`.
        """
        if self.sampling.temperature == 0:
            return choose(scores, None)
        assert self._turn is not None
        keys = [
            Noise(seed, self._vocab, self._device).keys(self._turn, position, 1)
            for seed, position in zip(seeds, positions, strict=True)
        ]
        return choose(scores, self._noise.gumbel(torch.cat(keys)))

    def follow(self, seed: int) -> None:
        """Draw the rest of this reply with another `seed`."""
        self._noise = Noise(seed, self._vocab, self._device)

    def numbers(self, position: int, rows: int) -> list[int]:
        """Return the keys of the random numbers for `rows` tokens of the turn from `position`
        on."""
        assert self._turn is not None
        return self._noise.numbers(self._turn, position, rows)
