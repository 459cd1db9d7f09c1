"""Runs GGUF files through llama.cpp, which multiplies weights of 4 to 8 bits as they are stored.

On processors, and on GPUs that llama.cpp was built for, this is faster than torch with 16-bit
weights (docs/decisions.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from voiceloop.errors import EngineError
from voiceloop.llm.gguf.context import Context, HeadContext, SavedRows, features, give_features
from voiceloop.llm.gguf.file import ASSISTANT, ROWS, GgufModel, StoredMatrix
from voiceloop.llm.model.attention import FEATURES
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.timing import Stopwatch
from voiceloop.llm.rules.verify import Tree

PIECE_S = 0.3
"""Seconds that one step of a prompt should take, because a cancellation takes effect at its end."""
LEAST_ROWS = 16
"""Minimum number of rows of a step of a prompt. Passes over fewer rows take longer for each row."""


class LlamaDecoder:
    """Runs a GGUF model by llama.cpp; implements `decoder.CausalModel`."""

    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(
        self,
        model: GgufModel,
        vocab: int,
        *,
        features: bool = False,
        ahead: GgufModel | None = None,
    ) -> None:
        """Logits are cut to the first `vocab` tokens. With `features`, caches also keep the inputs
        of the head. For an MTP layer or an assistant in the file `ahead`, they keep the inputs of
        the norm before it."""
        self.vocab, self.parameters, self.pass_bytes = vocab, model.parameters, model.nbytes
        self._model, self._features, self._raw = model, features, ahead is not None
        self._assistant = ahead if ahead and ahead.kind == ASSISTANT else None
        self._watch = Stopwatch(self.device)
        self._row_s = 0.0
        """Seconds that a row took in the last pass over `LEAST_ROWS` rows or more."""

    @property
    def embedding(self) -> StoredMatrix:
        """The embeddings of the tokens."""
        return self._model.embedding

    @property
    def chunk(self) -> int:
        """Maximum number of rows of a step of a prompt: what the model has lately read in
        `PIECE_S`."""
        fit = int(PIECE_S / self._row_s) if self._row_s else LEAST_ROWS
        return min(max(fit, LEAST_ROWS), ROWS)

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        """Compute `ids` as `CausalModel.forward` describes; the rows are in `cache.context`."""
        if cache.context is None or isinstance(cache.context, SavedRows):
            cache.context = Context(
                self._model,
                cache.capacity,
                cache.context,
                features=self._features,
                assistant=self._assistant,
            )
            if self._raw:
                give_features(cache.context.handle)
        context: Context = cache.context
        context.cut(cache.length)
        tokens: list[int] = ids.tolist()
        logits: Tensor | None = None
        for at in range(0, len(tokens), ROWS):
            piece = tokens[at : at + ROWS]
            with self._watch:
                logits = context.extend(piece, min(keep, len(piece)))
            if self._raw:
                given = features(context.handle, len(piece), self._model.width)
                cache.extend(FEATURES, given.unsqueeze(1))
            elif self._features:
                if not cache.length and not logits.any():
                    raise EngineError(
                        f"llama.cpp gives no features beside logits of {self._model.kind}",
                        "set llm.draft to auto",
                    )
                cache.extend(FEATURES, context.features(len(piece)).unsqueeze(1))
            cache.advance(len(piece))
            took_s = self._watch.take() / 1000
            if len(piece) >= LEAST_ROWS:
                self._row_s = took_s / len(piece)
        kept = 4 * cache.capacity * self._model.width
        cache.nbytes = context.nbytes + kept * (self._features or self._raw)
        assert logits is not None and len(logits) == keep, "what is wanted is of one pass"
        return logits[:, : self.vocab]


class LlamaHead:
    """Runs the MTP layer of a GGUF file by llama.cpp; implements `featuredraft.DraftLayer`."""

    device = torch.device("cpu")

    def __init__(self, model: GgufModel, vocab: int) -> None:
        """Logits are cut to the first `vocab` tokens."""
        self._model, self._vocab = model, vocab
        self.parameters = model.parameters // max(1, model.number("block_count") or 1)
        """About the number of weights of the layer: those of one layer of the model."""

    def forward(
        self, ids: Tensor, features: Tensor, cache: KvCache, tree: Tree | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute `ids` as `DraftLayer.forward` describes; the rows are in `cache.context`."""
        assert tree is None, "llama.cpp takes chains"
        if cache.context is None:
            cache.context = HeadContext(self._model, cache.capacity)
        context: HeadContext = cache.context
        context.cut(cache.length)
        tokens: list[int] = ids.tolist()
        logits, feature = context.extend(tokens, features)
        cache.advance(len(tokens))
        cache.nbytes = context.nbytes
        return logits[:, : self._vocab], feature
