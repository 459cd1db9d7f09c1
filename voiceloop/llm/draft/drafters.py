"""What drafts for a target: the models behind it, which all of its conversations share.

Each kind is made once for a target and makes a draft for every conversation.
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
    """Weights that a draft token takes."""
    captures: bool
    """Whether rounds with it can be captured."""
    branches: bool
    """Whether it proposes trees."""

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> Draft:
        """One for a conversation, of which `cache` is the target's; `slots` are its own model's,
        where rounds are captured."""
        ...


class ModelDrafter:
    """A smaller model of the target's vocabulary."""

    captures = branches = True

    def __init__(self, model: Decoder, capacity: int, ends: frozenset[int]) -> None:
        """As `ModelDraft` takes them."""
        self.model, self.parameters = model, model.parameters
        self._capacity, self._ends = capacity, ends

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> ModelDraft:
        """See `Drafter.draft`."""
        return ModelDraft(self.model, sampling, self._capacity, self._ends, slots)


class LayerDrafter:
    """A layer that was trained for the target."""

    captures, branches = False, True

    def __init__(self, model: FeatureModel, capacity: int, ends: frozenset[int]) -> None:
        """As `FeatureDraft` takes them."""
        self.model, self.parameters = model, model.parameters
        self._capacity, self._ends = capacity, ends

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> FeatureDraft:
        """See `Drafter.draft`."""
        return FeatureDraft(self.model, cache, sampling, self._capacity, self._ends)


class TranslatedDrafter:
    """A model with another tokenizer."""

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
        """`tokenizers` are the target's and the draft's; the others as `SharedDraft` takes them."""
        self.model, self.parameters = model, model.parameters
        self._tokenizers, self._same, self._vocab = tokenizers, same, vocab
        self._capacity, self._ends = capacity, ends

    def draft(
        self, sampling: Sampling, cache: KvCache, slots: Slots | None
    ) -> SharedDraft | TextDraft:
        """See `Drafter.draft`: by tokens where the two share most, else by words."""
        translation, capacity = Translation(*self._tokenizers), self._capacity
        if len(self._same) < MOST * self.model.vocab:
            return TextDraft(self.model, translation, *self._tokenizers, capacity)
        return SharedDraft(
            self.model, translation, self._same, self._vocab, sampling, capacity, self._ends
        )


class NgramDrafter:
    """What was said before, which needs no model."""

    captures = branches = True
    parameters = 0

    def __init__(self, device: torch.device) -> None:
        """`device` is the target's."""
        self._device = device

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> NgramDraft:
        """See `Drafter.draft`."""
        return NgramDraft(self._device)
