"""Drafters make the drafts of conversations. Each kind of draft has a drafter class.

A program makes one drafter for its target. The drafter makes one draft for each conversation. All
of its drafts share one model, if they need a model.

An assistant of Gemma 4 is a small model in a file of its own. Like an MTP layer, it takes a token
and the target's feature before it. It has no keys and values: all tokens of a draft have the
position of the first, and see what the target has read.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.draft.drafts import ChainDraft, Draft, ModelDraft, NgramDraft
from voiceloop.llm.draft.featuredraft import DraftLayer, FeatureDraft
from voiceloop.llm.draft.textdraft import MOST, SharedDraft, TextDraft
from voiceloop.llm.gguf.context import Context, HeadContext
from voiceloop.llm.model.attention import FEATURES
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.text.translation import Translation


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


class TranslatedDrafter:
    """Makes drafts that run a model with another tokenizer than the target's."""

    captures = branches = False
    acceptance = LIKELY

    def __init__(
        self,
        model: Decoder,
        tokenizers: tuple[Any, Any],
        same: Mapping[int, int],
        vocab: int,
        capacity: int,
        ends: frozenset[int],
    ) -> None:
        """`tokenizers` are the target's and the draft's. `same` maps the draft's ids of common
        tokens to the target's ids. `vocab` is the size of the target's vocabulary. `capacity` is
        the maximum length of a sequence in the draft's tokens. `ends` are the target's tokens that
        end a reply."""
        self.model, self.parameters = model, model.parameters
        self._tokenizers, self._same, self._vocab = tokenizers, same, vocab
        self._capacity, self._ends = capacity, ends

    def draft(
        self, sampling: Sampling, cache: KvCache, slots: Slots | None
    ) -> SharedDraft | TextDraft:
        """Make a `SharedDraft` if at least the share `MOST` of the draft's tokens are also tokens
        of the target, else a `TextDraft`."""
        translation, capacity = Translation(*self._tokenizers), self._capacity
        if len(self._same) < MOST * self.model.vocab:
            return TextDraft(self.model, translation, *self._tokenizers, capacity)
        return SharedDraft(
            self.model, translation, self._same, self._vocab, sampling, capacity, self._ends
        )


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
