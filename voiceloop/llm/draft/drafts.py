"""Drafts propose the target's next tokens, by a smaller model or from earlier tokens.

A draft never changes the distribution of a reply, only the time that the reply takes. This module
uses neither the target's model nor a clock.

A program makes one drafter for its target. The drafter makes one draft for each conversation. All
of its drafts share one model, if they need a model.
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
from voiceloop.llm.rules.verify import ROOT, DraftTokens, Tree


class Draft(Protocol):
    """Proposes draft tokens for one conversation."""

    @property
    def draws(self) -> bool:
        """Whether the draft draws tokens from distributions. Only then does `propose` use noise."""
        ...

    @property
    def lag(self) -> float:
        """The maximum number of unread ids that `propose` reads itself. If more ids are unread,
        `prefill` reads them first. The time of `prefill` does not count as the time of a draft
        step."""
        ...

    @property
    def length(self) -> int:
        """The number of ids that the draft has read."""
        ...

    @property
    def caches(self) -> tuple[KvCache, ...]:
        """The draft's caches. A `CachePool` keeps their rows while the conversation computes."""
        ...

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Read `ids`, the beginning of the sequence. Ids that were read before are not read
        again."""
        ...

    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """Propose tokens after `ids` for all or some nodes of `tree`. The generator pauses between
        passes.

        `noise` is Gumbel noise for the positions of the tree, [depth or more, vocab]. In coupled
        verification it is the noise that the target uses too. It is None if the target is greedy,
        or if the draft does not draw. `penalties` count the tokens of `ids` already. A caller that
        closes the generator at a pause must roll back to the end of `ids`.
        """
        ...

    def rollback(self, length: int) -> None:
        """Forget all tokens from index `length` on."""
        ...

    def release(self) -> None:
        """Forget all tokens, and free the caches if there are any."""
        ...


LIKELY = 0.7
"""The `acceptance` of drafts that compute."""


class Drafter(Protocol):
    """Makes drafts of one kind for the conversations of one target."""

    parameters: int
    """The number of weights that take part in computing a draft token."""
    captures: bool
    """Whether rounds with these drafts can be captured as CUDA graphs."""
    branches: bool
    """Whether these drafts can propose trees of tokens."""
    acceptance: float
    """The share of draft tokens that is assumed to be accepted before any were verified."""

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> Draft:
        """Make the draft of one conversation. `cache` is the target's cache of this conversation.
        `slots` are the slots of the draft's model; None if rounds are not captured."""
        ...


class ChainDraft(ABC):
    """Chooses one token after another. Each comes from a distribution over the target's vocabulary.
    The draft applies temperature and cut-offs to the distribution and draws from it, like the
    target."""

    draws = True

    def __init__(
        self,
        device: torch.device,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
        slots: Slots | None = None,
    ) -> None:
        """`capacity` is the maximum length of a sequence in tokens. The cache takes one of `slots`
        if they are given. `ends` are the tokens that end a reply.

        On the CPU, drafting stops after a token of `ends`. The target verifies that token like any
        other, so this changes no distribution.
        """
        self.cache = KvCache(capacity, slots)
        # On other devices, the host would have to wait for the device to read a token.
        self._ends = ends if device.type == "cpu" else frozenset[int]()
        self._device = device
        self._sampling = sampling

    @cached_property
    def _tokens(self) -> Tensor:
        """The buffer for the draft tokens of a round. The first use makes it, on the model's
        thread."""
        return torch.empty(self.cache.capacity, dtype=torch.long, device=self._device)

    @property
    def length(self) -> int:
        return self.cache.length

    @property
    def caches(self) -> tuple[KvCache, ...]:
        return (self.cache,)

    @torch.inference_mode()
    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """Propose a chain, with one pass for each token. On a GPU, the host does not wait for the
        device between the passes."""
        unseen, x = (yield from self._unseen(ids)), self._tokens
        k = tree.depth if len(unseen) else 0
        for i in range(k):
            if i > 0:
                yield None
            scores = warp(penalties.apply(self._logits(unseen), x[:i]), self._sampling)
            unseen = x[i : i + 1]
            unseen.copy_(choose(scores, None if noise is None else noise[i]))
            if self._ends and int(unseen) in self._ends:
                k = i + 1
                break
        return DraftTokens(x[:k])

    def rollback(self, length: int) -> None:
        self.cache.rollback(length)

    def release(self) -> None:
        self.cache.release()

    @abstractmethod
    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        """Prepare to draft after `ids`. Return the ids that the first pass has to read; an empty
        tensor means that nothing can be drafted."""

    @abstractmethod
    def _logits(self, unseen: Tensor) -> Tensor:
        """Return the logits after the last of the `unseen` tokens, [1, vocab]."""


class TreeDraft(ChainDraft):
    """A draft that can also propose several tokens for one position. It takes the tokens with the
    largest scores or, with noise, the largest sums of score and noise."""

    @torch.inference_mode()
    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """Propose a chain or a tree. A tree takes one pass for each level. The pass for a level
        computes the parents of that level's nodes. At the end the rows of the tree are
        forgotten."""
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
        """Compute the last `len(tokens)` nodes of `tree`. Return the logits after each of them,
        [nodes, vocab].

        `tokens` are the tokens of the computed nodes. Earlier passes computed all other nodes of
        `tree`. Row `after[i]` of the previous pass is the parent of the i-th computed node.
        """


class ModelDraft(TreeDraft):
    """A draft by a smaller model with the target's vocabulary."""

    # The cache always lacks the last id. After a round in which all draft tokens were accepted, it
    # lacks the last two ids; one pass reads both. It lacks more ids only after rounds without draft
    # tokens.
    lag = 2

    def __init__(
        self,
        model: Decoder,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
        slots: Slots | None = None,
    ) -> None:
        """All arguments except `model` are those of `ChainDraft`."""
        super().__init__(model.device, sampling, capacity, ends, slots)
        self._model = model

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        yield from feed(self._model, self.cache, ids)

    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        yield from ()
        self.rollback(len(ids) - 1)  # a cancelled round may have read the last id
        return torch.tensor(ids[self.cache.length :], device=self._device)

    def _logits(self, unseen: Tensor) -> Tensor:
        return self._model.forward(unseen, self.cache, 1)

    def _branch(self, tokens: Tensor, tree: Tree, after: Sequence[int]) -> Tensor:
        return self._model.forward_tree(tokens, self.cache, tree, len(tokens))


class ModelDrafter:
    """Makes drafts that run a smaller model with the target's vocabulary."""

    captures = branches = True
    acceptance = LIKELY

    def __init__(self, model: Decoder, capacity: int, ends: frozenset[int]) -> None:
        """`capacity` is the maximum length of a sequence in tokens. `ends` are the tokens that end
        a reply."""
        self.model, self.parameters = model, model.parameters
        self._capacity, self._ends = capacity, ends

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> ModelDraft:
        return ModelDraft(self.model, sampling, self._capacity, self._ends, slots)


class NgramDraft:
    """Proposes the tokens that followed the last few tokens at an earlier place of the sequence.

    This is prompt lookup (Saxena 2023). The longest n-gram that occurs earlier is used. If it
    occurs several times, the latest occurrence is used.
    """

    LONGEST, SHORTEST = 4, 2
    """Maximum and minimum length of the n-grams that are looked up, in tokens."""

    draws = False
    lag = math.inf
    caches: tuple[KvCache, ...] = ()

    def __init__(self, device: torch.device) -> None:
        """`device` is the device of the target."""
        self._device = device
        self._ids: list[int] = []
        self._ends: dict[tuple[int, ...], list[int]] = {}
        """For each n-gram, the indices of the tokens that followed it, in ascending order."""

    @property
    def length(self) -> int:
        return len(self._ids)

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        self._index(ids)
        yield None

    def propose(
        self, ids: Sequence[int], tree: Tree, noise: Tensor | None, penalties: Penalties
    ) -> Generator[None, None, DraftTokens]:
        """Propose one path for each different token that followed an earlier occurrence of the last
        tokens. There are at most as many paths as nodes at depth 0 of `tree`."""
        self._index(ids)
        yield from ()
        firsts = tree.children(ROOT)
        starts = self._starts(len(firsts))
        if not starts:
            return DraftTokens(torch.empty(0, dtype=torch.long, device=self._device))
        paths = [
            self._copied(at, tree.below(node)) for at, node in zip(starts, firsts, strict=False)
        ]
        # The nodes of a tree are numbered by depth.
        nodes = [(depth, at) for at, path in enumerate(paths) for depth in range(len(path))]
        nodes.sort()
        numbers = {node: number for number, node in enumerate(nodes)}
        found = Tree(tuple(numbers.get((depth - 1, at), ROOT) for depth, at in nodes))
        x = [paths[at][depth] for depth, at in nodes]
        tokens = torch.tensor(x, dtype=torch.long, device=self._device)
        return DraftTokens(tokens, branches=None if found.is_chain else found)

    def rollback(self, length: int) -> None:
        while len(self._ids) > length:
            for gram in self._grams():
                self._ends[gram].pop()  # the latest index is that of the removed token
                if not self._ends[gram]:
                    del self._ends[gram]
            self._ids.pop()

    def release(self) -> None:
        self._ids.clear()
        self._ends.clear()

    def _index(self, ids: Sequence[int]) -> None:
        for token in ids[len(self._ids) :]:
            self._ids.append(token)
            for gram in self._grams():
                self._ends.setdefault(gram, []).append(len(self._ids) - 1)

    def _grams(self) -> list[tuple[int, ...]]:
        """Return the n-grams that end right before the last token."""
        end = len(self._ids) - 1
        sizes = range(self.SHORTEST, min(self.LONGEST, end) + 1)
        return [tuple(self._ids[end - size : end]) for size in sizes]

    def _starts(self, most: int) -> list[int]:
        """Find earlier occurrences of the last tokens. Return the indices of at most `most`
        different tokens that followed them.

        Tokens after longer n-grams come first. Among n-grams of one length, later occurrences come
        first.
        """
        found = dict[int, int]()
        for size in range(self.LONGEST, self.SHORTEST - 1, -1):
            for end in reversed(self._ends.get(tuple(self._ids[-size:]), ())):
                if len(found) >= most:
                    break
                found.setdefault(self._ids[end], end)
        return list(found.values())

    def _copied(self, start: int, count: int) -> list[int]:
        """Copy `count` tokens from index `start` on. At the end of the sequence, copying starts
        again at `start`."""
        period = len(self._ids) - start
        return [self._ids[start + i % period] for i in range(count)]


class NgramDrafter:
    """Makes drafts that repeat earlier tokens of the conversation. These drafts need no model."""

    captures = branches = True
    parameters = 0
    acceptance = 0.3  # most sentences repeat nothing

    def __init__(self, device: torch.device) -> None:
        """`device` is the device of the target."""
        self._device = device

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> NgramDraft:
        return NgramDraft(self._device)
