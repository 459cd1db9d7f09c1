"""Drafts by models with another tokenizer than the target's.

The draft chooses only among the tokens that it has in common with the target. It draws them from
its own distribution with the target's noise (the method TLI in Timor et al. 2025, arXiv
2502.05202).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.draft.drafts import LIKELY, ChainDraft
from voiceloop.llm.model.cache import KvCache, Slots
from voiceloop.llm.model.decoder import Decoder, feed
from voiceloop.llm.rules import draftpolicy
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.text.translation import Translation

ROOM = 64
"""The number of rows of a draft's cache that are kept free for draft tokens."""


class TranslatedDraft(ChainDraft):
    """Drafts only tokens that the draft model has in common with the target. It reads the target's
    sequence in translation."""

    # `length` counts no token of the last proposal, because it is not known here which of them were
    # accepted.
    lag = draftpolicy.MOST + 1

    def __init__(
        self,
        model: Decoder,
        translation: Translation,
        same: Mapping[int, int],
        vocab: int,
        sampling: Sampling,
        capacity: int,
        ends: frozenset[int] = frozenset(),
    ) -> None:
        """`same` maps the draft's ids of common tokens to the target's ids. `vocab` is the size of
        the target's vocabulary. `capacity` is the maximum length of a sequence in the draft's
        tokens. `ends` are the target's tokens that end a reply."""
        super().__init__(model.device, sampling, capacity, ends)
        self._model, self._translation, self._vocab = model, translation, vocab
        own, target = list(same.keys()), list(same.values())
        self._own = torch.tensor(own, dtype=torch.long, device=model.device)
        self._target = torch.tensor(target, dtype=torch.long, device=model.device)
        self._meant = torch.zeros(vocab, dtype=torch.long, device=model.device)
        self._meant[self._target] = self._own
        self._read = 0
        self._fed = list[int]()
        """The tokens of the rows in the cache. Tokens that the cache lacks may follow."""
        self._first = True

    @property
    def length(self) -> int:
        return self._read

    def prefill(self, ids: Sequence[int]) -> Steps[None]:
        """Compute the rows of the translation of `ids`. Computes nothing if the translation is too
        long for the cache."""
        if self._missing(ids):
            yield from feed(self._model, self.cache, self._fed)
        self._read = len(ids)

    def rollback(self, length: int) -> None:
        """Cut the target's sequence back to `length`. The next `_missing` cuts the cache."""
        self._translation.rollback(length)
        self._read = min(self._read, length)

    def release(self) -> None:
        super().release()
        self._translation.rollback(0)
        self._read, self._fed = 0, []

    def _missing(self, ids: Sequence[int]) -> list[int]:
        """Roll the cache back to the tokens that it has in common with the translation of `ids`.
        Return the other tokens of the translation, at least one. If the translation is too long for
        the cache, return an empty list."""
        own = self._translation.translate(ids)
        if len(own) > self.cache.capacity - ROOM:
            return []
        most = min(self.cache.length, len(self._fed), len(own) - 1)
        same = next((i for i in range(most) if self._fed[i] != own[i]), max(0, most))
        self.cache.rollback(same)
        self._fed = own
        return own[same:]

    def _unseen(self, ids: Sequence[int]) -> Generator[None, None, Tensor]:
        self._first, own = True, self._missing(ids)
        if len(own) > self._model.chunk:
            yield from feed(self._model, self.cache, self._fed[:-1])
            yield None
            own = own[-1:]
        self._read = len(ids)
        return torch.tensor(own, device=self._device)

    def _logits(self, unseen: Tensor) -> Tensor:
        if not self._first:  # `unseen` is the target's id of the token that this draft chose
            unseen = self._meant[unseen]
            self._fed.append(int(unseen))
        self._first = False
        logits = self._model.forward(unseen, self.cache, 1)
        every = logits.new_full((1, self._vocab), -torch.inf)
        return every.index_copy_(1, self._target, logits.index_select(1, self._own))


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

    def draft(self, sampling: Sampling, cache: KvCache, slots: Slots | None) -> TranslatedDraft:
        return TranslatedDraft(
            self.model,
            Translation(*self._tokenizers),
            self._same,
            self._vocab,
            sampling,
            self._capacity,
            self._ends,
        )
