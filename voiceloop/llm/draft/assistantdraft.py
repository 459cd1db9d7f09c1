"""Drafts by an assistant of Gemma 4, which attends to the target's own keys and values.

An assistant is a small model in a file of its own. Like an MTP layer, it takes a token and the
target's feature before it. It has no keys and values: all tokens of a draft have the position of
the first, and see what the target has read.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.draft.drafts import ChainDraft
from voiceloop.llm.gguf.context import Context
from voiceloop.llm.gguf.head import HeadContext
from voiceloop.llm.model.attention import FEATURES
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.rules.sampling import Sampling


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
