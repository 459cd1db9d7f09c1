"""Drafts that read the target's features.

A feature is the input of the target's head. A layer that was trained for the target takes for each
token the token's embedding and the feature before the token, and computes the feature after the
token (EAGLE: Li et al. 2024, arXiv 2401.15077). While the layer drafts, it uses its own features at
positions where the target has not computed any yet. Rows that depend on its own features are
computed again later.

An assistant of Gemma 4 is a small model in a file of its own. Like a layer, it takes a token and
the target's feature before it. It has no keys and values: all tokens of a draft have the position
of the first, and see what the target has read.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.draft.drafts import LIKELY, ChainDraft, TreeDraft
from voiceloop.llm.draft.trained import FUSE, LoadedHead
from voiceloop.llm.gguf.context import Context, HeadContext
from voiceloop.llm.model.attention import FEATURES, Branching, Following
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.model.checkpoint import EMBEDDING, HEAD, Checkpoint, Sight, rotary_table
from voiceloop.llm.model.decoder import LeanDecoder, TargetDecoder, chunk
from voiceloop.llm.model.operations import linear
from voiceloop.llm.rules import draftpolicy
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.rules.verify import Tree


class FeatureModel:
    """The draft's layer with its target's embedding and head."""

    def __init__(
        self, head: LoadedHead, rows: Tensor, target: TargetDecoder, capacity: int
    ) -> None:
        """`rows` are from `head_rows`; `target` is the target's decoder. `capacity` is the maximum
        length of a sequence in tokens."""
        shape, dtype = head.card.shape, target.dtype
        weights = {name: weight.to(dtype) for name, weight in head.weights.items()}
        self._fuse = linear(weights.pop(FUSE))
        self.embedding = target.embedding

        def rotary(positions: int) -> tuple[Tensor, Tensor]:
            return rotary_table(positions, shape.dim, shape.theta, dtype, target.device)

        checkpoint = Checkpoint(
            sights=(Sight(rotary),),
            heads=shape.heads,
            groups=shape.groups,
            dim=shape.dim,
            eps=shape.eps,
            # The layer is given embedded tokens, so it needs no embeddings of its own.
            weights=weights | {EMBEDDING: rows[:1].to(dtype), HEAD: rows.to(dtype)},
            dtype=dtype,
        )
        self._layer = LeanDecoder(checkpoint, len(rows), capacity)
        self.tokens = head.tokens.to(target.device)
        self.vocab = target.vocab
        self.device = target.device
        self.hidden = shape.hidden
        self.dtype = dtype
        self.parameters = head.parameters
        self.pass_bytes = self._fuse.nbytes + self._layer.pass_bytes
        """The bytes of large matrices that a pass reads."""

    @torch.inference_mode()
    def forward(
        self,
        ids: Tensor,
        features: Tensor,
        cache: KvCache,
        tree: Tree | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute `ids` [rows] after the rows of `cache`. `features` [rows, hidden] has for each id
        the feature before it.

        Returns the logits after the last id, [1, vocab], and the feature after the last id, [1,
        hidden]. Logits are -inf for tokens that the draft never chooses. If `tree` is given, the
        ids are its last nodes, and the results have one row for each id.
        """
        x = self._fuse(torch.cat((self.embedding[ids], features), -1))
        if tree is None:
            found = self._layer.through(x, Following(cache, len(ids)))[-1:]
        else:
            found = self._layer.through(x, Branching(cache, len(ids), tree, self.device))
        cache.advance(len(ids))
        feature = self._layer.normed(found)
        logits = self._layer.head(feature)
        every = logits.new_full((len(logits), self.vocab), -torch.inf)
        return every.index_copy_(1, self.tokens, logits), feature


class DraftLayer(Protocol):
    """A layer that predicts the next token from a token and the target's feature before it."""

    parameters: int
    device: torch.device

    def forward(
        self, ids: Tensor, features: Tensor, cache: KvCache, tree: Tree | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute `ids` like `FeatureModel.forward`."""
        ...


class FeatureDraft(TreeDraft):
    """A draft by a layer that was trained for the target."""

    # The rows of the last proposal have the layer's own features. They are computed again with the
    # target's features.
    lag = draftpolicy.MOST + 1

    def __init__(
        self,
        model: DraftLayer,
        features: KvCache,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
    ) -> None:
        """`features` is the target's cache of the conversation; it must keep features. The other
        arguments are those of `ChainDraft`."""
        super().__init__(model.device, sampling, capacity, ends)
        self._layer, self._features = model, features
        self._sure = 0
        """The number of rows that were computed with the target's features."""
        self._last: Tensor | None = None
        """The features that the last pass computed; None if the next row takes a feature of the
        target."""

    @property
    def length(self) -> int:
        return self._sure

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Read `ids` in order. Stop before an id if the feature before this id is not yet in the
        target's cache."""
        self.rollback(self._sure)
        end, most = min(len(ids), self._features.length + 1), chunk(self._device)
        while self._sure < end:
            piece = ids[self._sure : min(end, self._sure + most)]
            self._fed(torch.tensor(piece, device=self._device))
            yield None

    def rollback(self, length: int) -> None:
        """Forget the rows from `length` on, and all rows with the layer's own features."""
        self._sure = min(self._sure, length)
        self._last = None
        super().rollback(self._sure)

    def release(self) -> None:
        super().release()
        self._sure, self._last = 0, None

    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        yield from ()
        self.rollback(len(ids) - 1)
        return torch.tensor(ids[self._sure :], device=self._device)

    def _logits(self, unseen: Tensor) -> Tensor:
        if self._last is None:
            logits, self._last = self._fed(unseen)
        else:
            logits, self._last = self._layer.forward(unseen, self._last, self.cache)
        return logits

    def _branch(self, tokens: Tensor, tree: Tree, after: Sequence[int]) -> Tensor:
        assert self._last is not None, "the first level stands on the target's feature"
        features = self._last[list(after)]
        logits, self._last = self._layer.forward(tokens, features, self.cache, tree)
        return logits

    def _fed(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Compute `ids` with the target's features. Return the logits and the feature after the
        last id."""
        start = self.cache.length
        (rows,) = self._features.written(FEATURES)
        before = rows[max(0, start - 1) : start + len(ids) - 1, 0]
        if start == 0:  # no feature is before the first token
            before = F.pad(before, (0, 0, 1, 0))
        found = self._layer.forward(ids, before, self.cache)
        self._sure = self.cache.length
        return found


class LayerDrafter:
    """Makes drafts that run a layer. The layer was trained for the target."""

    captures, branches = False, True
    acceptance = LIKELY

    def __init__(self, model: DraftLayer, capacity: int, ends: frozenset[int]) -> None:
        """`capacity` is the maximum length of a sequence in tokens. `ends` are the tokens that end
        a reply."""
        self.model, self.parameters = model, model.parameters
        self._capacity, self._ends = capacity, ends

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> FeatureDraft:
        return FeatureDraft(self.model, cache, sampling, self._capacity, self._ends)


class AssistantDraft(ChainDraft):
    """A draft by an assistant."""

    lag = math.inf

    def __init__(
        self,
        target: KvCache,
        vocab: int,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int],
    ) -> None:
        """`target` is the target's cache of the conversation, whose context has the assistant's.
        `vocab` is the number of the target's tokens. The other arguments are those of
        `ChainDraft`."""
        super().__init__(torch.device("cpu"), sampling, capacity, ends)
        self._target, self._vocab = target, vocab
        self._read = 0
        self._last = torch.empty(0)
        """The feature before the next token."""

    @property
    def length(self) -> int:
        return self._read

    @property
    def caches(self) -> tuple[KvCache, ...]:
        return ()

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Read nothing: the target reads."""
        self._read = len(ids)
        yield None

    def rollback(self, length: int) -> None:
        self._read = min(self._read, length)

    def release(self) -> None:
        self._read = 0

    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        yield from ()
        known, context = len(ids) - 1, self._target.context
        self._read = len(ids)
        if self._target.length < known or not isinstance(context, Context):
            return torch.empty(0, dtype=torch.long)
        context.cut(known)  # rejected tokens have keys and values until the target's next pass
        (rows,) = self._target.written(FEATURES)
        self._last = rows[known - 1]
        return torch.tensor(ids[known:])

    def _logits(self, unseen: Tensor) -> Tensor:
        assistant: HeadContext = self._target.context.assistant
        logits, self._last = assistant.extend(unseen.tolist(), self._last, self._read - 1)
        return logits[:, : self._vocab]


class AssistantDrafter:
    """Makes drafts that run an assistant of Gemma 4."""

    captures = branches = False
    acceptance = LIKELY

    def __init__(self, parameters: int, vocab: int, capacity: int, ends: frozenset[int]) -> None:
        """`parameters` is the number of the assistant's weights, `vocab` that of the target's
        tokens. `capacity` is the maximum length of a sequence in tokens. `ends` are the tokens that
        end a reply."""
        self.parameters = parameters
        self._vocab, self._capacity, self._ends = vocab, capacity, ends

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> AssistantDraft:
        return AssistantDraft(cache, self._vocab, sampling, self._capacity, self._ends)
