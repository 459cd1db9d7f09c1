"""What proposes the target's next tokens: a smaller model, or what was said before.

What a draft proposes never changes the distribution of what is said, only how soon it is said. This
module knows neither the target nor the clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.model.attention import followed
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.model.decoder import Decoder, feed
from voiceloop.llm.rules.sampling import Penalties, Sampling, choose, warp
from voiceloop.llm.rules.tree import ROOT, Tree
from voiceloop.llm.rules.verify import DraftTokens


class Draft(Protocol):
    """Proposes tokens for one conversation."""

    @property
    def draws(self) -> bool:
        """Whether it has distributions to draw from, and wants noise for that."""
        ...

    @property
    def lag(self) -> float:
        """Tokens at the end of a sequence that a proposal reads by the way. What it lacks before
        these it is told by `prefill`: that is no part of what a step takes."""
        ...

    @property
    def length(self) -> int:
        """Tokens of the sequence that it has seen."""
        ...

    @property
    def caches(self) -> tuple[KvCache, ...]:
        """Its buffers, which the conversation holds while it computes."""
        ...

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Get ready for a sequence that begins with `ids`."""
        ...

    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """Propose tokens that follow `ids`, for as many of a tree's nodes as there are any; pauses
        between forward passes.

        `noise` is Gumbel noise for these positions, [depth or more, vocab], to choose with: the
        target's own in coupled verification; None if the target is greedy. `penalties` have
        counted `ids`. Whoever closes this at a pause rolls back to where the ids end.
        """
        ...

    def rollback(self, length: int) -> None:
        """Forget everything from position `length` on."""
        ...

    def release(self) -> None:
        """Forget everything."""
        ...


class ChainDraft(ABC):
    """Chooses one token after the other, each from a distribution over the target's vocabulary,
    which it warps and chooses from as the target does."""

    draws = True

    def __init__(
        self,
        device: torch.device,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
        slots: Slots | None = None,
    ) -> None:
        """`ends` are the tokens that end a reply: nothing is drafted after one of them.

        The one that ends it is verified like any other, so this changes no distribution.
        """
        self.cache = KvCache(capacity, slots)
        # Elsewhere it would take a wait for the device to know that a token ends the reply.
        self._ends = ends if device.type == "cpu" else frozenset[int]()
        self._device = device
        self._sampling = sampling
        self._q: Tensor | None = None
        """In rejection sampling, the distributions of the tokens, [k or more, vocab]."""

    @cached_property
    def _tokens(self) -> Tensor:
        """Those of a round; made as `Speculator` makes its rows."""
        return torch.empty(self.cache.capacity, dtype=torch.long, device=self._device)

    @property
    def length(self) -> int:
        """See `Draft.length`."""
        return self.cache.length

    @property
    def caches(self) -> tuple[KvCache, ...]:
        """See `Draft.caches`."""
        return (self.cache,)

    @torch.inference_mode()
    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """See `Draft.propose`. Nothing waits for the device between the tokens."""
        unseen, x = (yield from self._unseen(ids)), self._tokens
        k = tree.depth if len(unseen) else 0
        for i in range(k):
            if i > 0:
                yield None
            scores = warp(penalties.apply(self._logits(unseen), x[:i]), self._sampling)
            if self._sampling.rejects:
                torch.softmax(scores, -1, out=self._q_row(i, k, scores))
            unseen = x[i : i + 1]
            unseen.copy_(choose(scores, None if noise is None else noise[i]))
            if self._ends and int(unseen) in self._ends:
                k = i + 1
                break
        return DraftTokens(x[:k], None if self._q is None else self._q[:k])

    def rollback(self, length: int) -> None:
        """See `Draft.rollback`."""
        self.cache.rollback(length)

    def release(self) -> None:
        """See `Draft.release`."""
        self.cache.release()

    @abstractmethod
    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        """Get ready to draft what follows `ids`: those that the first pass has to see; none where
        nothing can be drafted."""

    @abstractmethod
    def _logits(self, unseen: Tensor) -> Tensor:
        """Those after the last of these tokens, [1, vocab]."""

    def _q_row(self, i: int, k: int, like: Tensor) -> Tensor:
        """Where the distribution of number `i` of a round's `k` tokens is kept, [1, vocab]."""
        if self._q is None or len(self._q) < k:
            self._q = like.new_empty(k, like.shape[-1])
        return self._q[i : i + 1]


class TreeDraft(ChainDraft):
    """One that also proposes several tokens for one place: those likeliest by its distribution, or
    those that the noise there prefers."""

    @torch.inference_mode()
    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """See `Draft.propose`. A pass for each level, over the nodes of the one before that
        something follows; what these leave is forgotten at the end."""
        if tree.is_chain:
            return (yield from super().propose(ids, tree, noise, penalties))
        unseen, x = (yield from self._unseen(ids)), self._tokens
        if not len(unseen):
            return DraftTokens(unseen)
        before, parents = list[int](), [ROOT]
        for depth, level in enumerate(tree.levels):
            x_known = x[: level[0]]
            if depth == 0:
                scores = penalties.apply(self._logits(unseen), x_known)
            else:
                yield None
                passed = tree.inner[: tree.inner.index(parents[-1]) + 1]
                after = [before.index(tree.parents[node]) for node in parents]
                logits = self._branch(x[parents], tree.only(passed), after)
                follows = followed(tree, self._device)[[p + 1 for p in parents], : level[0]]
                scores = penalties.apply(logits, x_known, follows=follows)
            scores = warp(scores, self._sampling)
            if noise is not None:
                scores = scores + noise[depth]
            ranks = [tree.ranks[node] for node in level]
            rows = [parents.index(tree.parents[node]) for node in level]
            x[list(level)] = scores.topk(max(ranks) + 1, -1).indices[rows, ranks]
            before, parents = parents, [node for node in level if tree.children(node)]
        self.rollback(len(ids))
        return DraftTokens(x[: len(tree)], branches=tree)

    @abstractmethod
    def _branch(self, tokens: Tensor, tree: Tree, after: Sequence[int]) -> Tensor:
        """The logits after the last nodes of a tree, whose `tokens` these are, [nodes, vocab]; the
        others were in passes before. Each is `after` one of the rows of the last pass."""


class ModelDraft(TreeDraft):
    """A smaller model with the target's vocabulary."""

    # After a round in which all were accepted, the last of them has not been seen either; both go
    # in one pass. More is there only after rounds without draft tokens.
    lag = 2

    def __init__(
        self,
        model: Decoder,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
        slots: Slots | None = None,
    ) -> None:
        """See `ChainDraft`."""
        super().__init__(model.device, sampling, capacity, ends, slots)
        self._model = model

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """See `Draft.prefill`."""
        yield from feed(self._model, self.cache, ids)

    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        yield from ()
        self.rollback(len(ids) - 1)  # a round that was cancelled has seen all of them
        return torch.tensor(ids[self.cache.length :], device=self._device)

    def _logits(self, unseen: Tensor) -> Tensor:
        return self._model.forward(unseen, self.cache, 1)

    def _branch(self, tokens: Tensor, tree: Tree, after: Sequence[int]) -> Tensor:
        return self._model.forward_tree(tokens, self.cache, tree, len(tokens))


class NgramDraft:
    """Prompt lookup: what followed the last few tokens when they were last said (Saxena 2023).

    The longest n-gram that occurred before decides, its latest occurrence first. Needs no model.
    """

    LONGEST, SHORTEST = 4, 2
    """Tokens of the n-grams that are looked up."""

    draws = False
    lag = math.inf
    caches: tuple[KvCache, ...] = ()

    def __init__(self, device: torch.device) -> None:
        """`device` is the target's."""
        self._device = device
        self._ids: list[int] = []
        self._ends: dict[tuple[int, ...], list[int]] = {}
        """Where each n-gram ended that something followed, in order."""

    @property
    def length(self) -> int:
        """See `Draft.length`."""
        return len(self._ids)

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """See `Draft.prefill`."""
        self._index(ids)
        yield None

    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """See `Draft.propose`. It proposes nothing where nothing is repeated, and as many paths as
        there are different tokens that followed."""
        self._index(ids)
        yield from ()
        firsts = tree.children(ROOT)
        starts = self._starts(len(firsts))
        if not starts:
            return DraftTokens(torch.empty(0, dtype=torch.long, device=self._device))
        paths = [
            self._copied(at, tree.below(node)) for at, node in zip(starts, firsts, strict=False)
        ]
        # Numbered by depth, as trees are.
        nodes = [(depth, at) for at, path in enumerate(paths) for depth in range(len(path))]
        nodes.sort()
        numbers = {node: number for number, node in enumerate(nodes)}
        found = Tree(tuple(numbers.get((depth - 1, at), ROOT) for depth, at in nodes))
        x = [paths[at][depth] for depth, at in nodes]
        tokens = torch.tensor(x, dtype=torch.long, device=self._device)
        return DraftTokens(tokens, branches=None if found.is_chain else found)

    def rollback(self, length: int) -> None:
        """See `Draft.rollback`."""
        while len(self._ids) > length:
            for gram in self._grams():
                self._ends[gram].pop()  # the latest is the one that this token followed
                if not self._ends[gram]:
                    del self._ends[gram]
            self._ids.pop()

    def release(self) -> None:
        """See `Draft.release`."""
        self._ids.clear()
        self._ends.clear()

    def _index(self, ids: Sequence[int]) -> None:
        for token in ids[len(self._ids) :]:
            self._ids.append(token)
            for gram in self._grams():
                self._ends.setdefault(gram, []).append(len(self._ids) - 1)

    def _grams(self) -> list[tuple[int, ...]]:
        """The n-grams that the last token follows."""
        end = len(self._ids) - 1
        sizes = range(self.SHORTEST, min(self.LONGEST, end) + 1)
        return [tuple(self._ids[end - size : end]) for size in sizes]

    def _starts(self, most: int) -> list[int]:
        """Where the last few tokens went on in different ways when they occurred before: after the
        longest of them first, and where they last did."""
        found = dict[int, int]()
        for size in range(self.LONGEST, self.SHORTEST - 1, -1):
            for end in reversed(self._ends.get(tuple(self._ids[-size:]), ())):
                if len(found) >= most:
                    break
                found.setdefault(self._ids[end], end)
        return list(found.values())

    def _copied(self, start: int, count: int) -> list[int]:
        """The tokens from `start` on. What runs into the end of the sequence is repeated: they
        follow their own pattern."""
        period = len(self._ids) - start
        return [self._ids[start + i % period] for i in range(count)]
