"""Drafters: one for each kind of draft, with the model that all conversations of a target share.

A drafter is made once for a target, and makes a draft for every conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from voiceloop.llm.draft.drafts import Draft, ModelDraft, NgramDraft
from voiceloop.llm.draft.featuredraft import FeatureDraft, FeatureModel
from voiceloop.llm.draft.textdraft import MOST, SharedDraft, TextDraft
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.model.decoder import Decoder
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.text.translation import Translation


class Drafter(Protocol):
    """One kind of draft for one target."""

    parameters: int
    """The number of weights that take part in computing a draft token."""
    captures: bool
    """Whether rounds with its drafts can be captured."""
    branches: bool
    """Whether its drafts propose trees."""

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> Draft:
        """Make the draft of a conversation. `cache` is the target's cache of this conversation.
        `slots` are those of the draft model; None if rounds are not captured."""
        ...


class ModelDrafter:
    """Makes drafts by a smaller model with the target's vocabulary."""

    captures = branches = True

    def __init__(self, model: Decoder, capacity: int, ends: frozenset[int]) -> None:
        """The arguments are those of `ModelDraft`."""
        self.model, self.parameters = model, model.parameters
        self._capacity, self._ends = capacity, ends

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> ModelDraft:
        return ModelDraft(self.model, sampling, self._capacity, self._ends, slots)


class LayerDrafter:
    """Makes drafts by a layer that was trained for the target."""

    captures, branches = False, True

    def __init__(self, model: FeatureModel, capacity: int, ends: frozenset[int]) -> None:
        """The arguments are those of `FeatureDraft`."""
        self.model, self.parameters = model, model.parameters
        self._capacity, self._ends = capacity, ends

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> FeatureDraft:
        return FeatureDraft(self.model, cache, sampling, self._capacity, self._ends)


class TranslatedDrafter:
    """Makes drafts by a model with another tokenizer than the target's."""

    captures = branches = False

    def __init__(
        self,
        model: Decoder,
        tokenizers: tuple[Any, Any],
        same: Mapping[int, int],
        vocab: int,
        capacity: int,
        ends: frozenset[int],
    ) -> None:
        """`tokenizers` are the target's and the draft's. The other arguments are those of
        `SharedDraft`."""
        self.model, self.parameters = model, model.parameters
        self._tokenizers, self._same, self._vocab = tokenizers, same, vocab
        self._capacity, self._ends = capacity, ends

    def draft(
        self, sampling: Sampling, cache: KvCache, slots: Slots | None
    ) -> SharedDraft | TextDraft:
        """Make a `SharedDraft` if the target has most of the draft's tokens, else a `TextDraft`."""
        translation, capacity = Translation(*self._tokenizers), self._capacity
        if len(self._same) < MOST * self.model.vocab:
            return TextDraft(self.model, translation, *self._tokenizers, capacity)
        return SharedDraft(
            self.model, translation, self._same, self._vocab, sampling, capacity, self._ends
        )


class NgramDrafter:
    """Makes drafts that repeat what was said before; they need no model."""

    captures = branches = True
    parameters = 0

    def __init__(self, device: torch.device) -> None:
        """`device` is the target's."""
        self._device = device

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> NgramDraft:
        return NgramDraft(self._device)
