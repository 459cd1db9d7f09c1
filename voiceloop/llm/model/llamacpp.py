"""Runs GGUF files through llama.cpp, which multiplies weights of 4 to 8 bits as they are stored.

On processors, and on GPUs that llama.cpp was built for, this is faster than torch with 16-bit
weights (docs/decisions.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from voiceloop.llm.gguf.context import ROWS, Context
from voiceloop.llm.gguf.file import GgufModel
from voiceloop.llm.model.cache import KvCache

STEP_WORK = 100e9
"""Maximum work of one step of a prompt, in weights times rows. This work takes half a second on two
cores. Passes over fewer rows take longer for each row."""


class LlamaDecoder:
    """Runs a GGUF model by llama.cpp; implements `decoder.CausalModel`."""

    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, model: GgufModel, vocab: int) -> None:
        """Logits are cut to the first `vocab` tokens."""
        self.vocab, self.parameters, self.pass_bytes = vocab, model.parameters, model.nbytes
        self.chunk = max(1, min(ROWS, int(STEP_WORK / model.parameters)))
        self._model = model

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """Compute `ids` as `CausalModel.forward` describes; the rows are in `cache.context`."""
        if cache.context is None:
            cache.context = Context(self._model, cache.capacity)
            cache.nbytes = cache.capacity * self._model.row_bytes
        context: Context = cache.context
        context.cut(cache.length)
        tokens: list[int] = ids.tolist()
        logits: Tensor | None = None
        for at in range(0, len(tokens), ROWS):
            piece = tokens[at : at + ROWS]
            logits = context.extend(piece, min(keep, len(piece)))
        cache.advance(len(tokens))
        assert logits is not None and len(logits) == keep, "what is wanted is of one pass"
        return logits[:, : self.vocab]
