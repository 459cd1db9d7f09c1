"""Several replies that are written at once, one token of each in a pass.

They are lines through one tree behind what the cache holds: each row sees its own line alone, and
those that have said the same so far share their rows. What is guessed to follow may be added to the
tree before it is known, which is speculation: a line goes on through what it would have chosen.
What tokens mean and when a line is over, this module is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from voiceloop.llm.model.attention import followed
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.rules.sampling import Penalties, exact, warp
from voiceloop.llm.rules.tree import ROOT, Tree
from voiceloop.llm.rules.verify import Verifier


@dataclass(slots=True)
class Line:
    """One reply."""

    seed: int
    limit: int
    """Most tokens."""
    ends: Callable[[int], bool]
    """Is told each token; whether the line is over behind it."""
    node: int = ROOT
    """The last of its tokens that the target has seen, or what it answers."""
    tokens: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    done: bool = False

    def add(self, token: int, logprob: float) -> None:
        """Go on by a token."""
        self.tokens.append(token)
        self.logprobs.append(logprob)
        self.done = self.ends(token) or len(self.tokens) == self.limit

    def follows(self, nodes: Nodes) -> bool:
        """Go on to the node of the last token, if there is one."""
        child = nodes.child(self.node, self.tokens[-1])
        self.node = self.node if child is None else child
        return child is not None


class Nodes:
    """The tokens that the target has computed, or is about to, behind what the cache held, and
    which follows which."""

    def __init__(self, root: int) -> None:
        self.root = root
        """Rows before the tree."""
        self.x = list[int]()
        self.tree = Tree(())
        self.asked = 0
        """So many of the first nodes are no part of a reply."""

    def add(self, lines: Sequence[Line]) -> None:
        """Add the last token of each of `lines`, which get to know their nodes: those that have
        said the same have one."""
        found = {(line.node, line.tokens[-1]): 0 for line in lines}
        for number, place in enumerate(found):
            found[place] = len(self.x) + number
        for line in lines:
            line.node = found[line.node, line.tokens[-1]]
        self.grow(*zip(*found, strict=True))

    def follow(self, node: int, tokens: Sequence[int]) -> None:
        """Add `tokens` that follow a node, and one another."""
        new = range(len(self.x), len(self.x) + len(tokens))
        self.grow([node, *new][: len(tokens)], tokens)

    def grow(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Add `tokens`, each of which follows one of the nodes."""
        self.x, self.tree = [*self.x, *tokens], Tree((*self.tree.parents, *parents))

    def cut(self, length: int) -> None:
        """Forget all but the first so many."""
        self.x, self.tree = self.x[:length], Tree(self.tree.parents[:length])

    def child(self, node: int, token: int) -> int | None:
        """Which node has that token and follows `node`."""
        return next((at for at in self.tree.children(node) if self.x[at] == token), None)

    def compute(self, target: Decoder, cache: KvCache) -> Tensor:
        """One pass over those that the cache has not: the logits behind them, [new, vocab]."""
        new = torch.tensor(self.x[cache.length - self.root :], device=target.device)
        return target.forward_tree(new, cache, self.tree, len(new))


@dataclass(frozen=True, slots=True)
class Chooser:
    """How lines go on: as the replies of one conversation do, but for their seeds."""

    verifier: Verifier
    penalties: Penalties

    def walk(self, lines: Sequence[Line], nodes: Nodes, logits: Tensor, position: int) -> None:
        """Let each of `lines` go on by what it chooses behind its node, and behind those that it
        gets to so.

        The `logits` are those behind the last of the nodes, or behind what the cache held before
        all of them; a line's first token is number `position` of the turn's. Waits for the device.
        """
        first = len(nodes.x) - len(logits)
        scores, logprobs = self._scores(logits, nodes), exact(logits).log_softmax(-1)
        while lines:
            rows = [line.node - first for line in lines]
            places = [position + len(line.tokens) for line in lines]
            chosen = self.verifier.choices(scores[rows], [line.seed for line in lines], places)
            told = logprobs[rows].gather(1, chosen.unsqueeze(1)).squeeze(1)
            tokens: list[int] = cast(Any, chosen).tolist()
            for line, token, logprob in zip(lines, tokens, cast(Any, told).tolist(), strict=True):
                line.add(token, logprob)
            lines = [line for line in lines if not line.done and line.follows(nodes)]

    def _scores(self, logits: Tensor, nodes: Nodes) -> Tensor:
        """What decides behind the last of the nodes, from the `logits` there."""
        replied = slice(nodes.asked, None)
        x = torch.tensor(nodes.x[replied], dtype=torch.long, device=logits.device)
        follows: Tensor | None = None
        if self.penalties.counting:
            follows = followed(nodes.tree, logits.device)[-len(logits) :, replied]
        return warp(self.penalties.apply(logits, x, follows=follows), self.verifier.sampling)
