"""Trees of draft tokens: each node is a token that follows its parent.

A pass over a tree verifies several tokens for the same position at once: each row attends only to
its ancestors and itself (Miao et al. 2024, SpecInfer, arXiv 2305.09781). A chain is a tree without
branches. This module knows neither tokens nor models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

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
