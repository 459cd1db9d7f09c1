"""Trees of draft tokens: which token each of them follows.

A pass over a tree verifies several guesses for the same place at once, each row seeing its own
ancestors alone (Miao et al. 2024, SpecInfer, arXiv 2305.09781). A chain is a tree without
branches. This module knows neither tokens nor models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

ROOT = -1


@dataclass(frozen=True)
class Tree:
    """Nodes, numbered by depth; each follows another, or what the tree stands on."""

    parents: tuple[int, ...]
    """What each follows; `ROOT` is what the tree stands on."""

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """How many nodes are between each and the root."""
        return tuple(len(path) - 1 for path in self.paths)

    @cached_property
    def depth(self) -> int:
        """Nodes of the longest path."""
        return max(self.depths, default=-1) + 1

    @cached_property
    def is_chain(self) -> bool:
        """Whether nothing branches."""
        return self.depth == len(self)

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The nodes of each depth."""
        return tuple(
            tuple(node for node, depth in enumerate(self.depths) if depth == level)
            for level in range(self.depth)
        )

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """How many of lower numbers follow the same."""
        return tuple(self.parents[:node].count(parent) for node, parent in enumerate(self.parents))

    def children(self, node: int) -> tuple[int, ...]:
        """What follows a node, or `ROOT`, in order of their ranks."""
        return self._children.get(node, ())

    @cached_property
    def _children(self) -> dict[int, tuple[int, ...]]:
        found = dict[int, tuple[int, ...]]()
        for node, parent in enumerate(self.parents):
            found[parent] = (*found.get(parent, ()), node)
        return found

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """The nodes on the path to each, itself included."""
        paths = list[tuple[int, ...]]()
        for node, parent in enumerate(self.parents):
            paths.append((node,) if parent == ROOT else (*paths[parent], node))
        return tuple(paths)

    @cached_property
    def inner(self) -> tuple[int, ...]:
        """The nodes that something follows."""
        return tuple(node for node in range(len(self)) if node in self._children)

    def below(self, node: int) -> int:
        """Nodes of the path from a node on that goes by the first of what follows, itself
        included."""
        return 1 + (self.below(self.children(node)[0]) if self.children(node) else 0)

    def cut(self, depth: int) -> Tree:
        """What is left of paths that are no longer than `depth`."""
        if self.depth <= depth:
            return self
        return self.only([node for node, at in enumerate(self.depths) if at < depth])

    def only(self, nodes: Sequence[int]) -> Tree:
        """Return the tree of `nodes` alone, renumbered from 0.

        The parent of each of them must be among them.
        """
        numbers = {node: number for number, node in enumerate(nodes)} | {ROOT: ROOT}
        return Tree(tuple(numbers[self.parents[node]] for node in nodes))


@cache
def chain(length: int) -> Tree:
    """Nodes that follow one another."""
    return Tree(tuple(range(ROOT, length + ROOT)))
