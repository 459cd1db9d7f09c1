"""Runs GGUF files through llama.cpp, which multiplies weights of 4 to 8 bits as they are stored.

On processors, and on GPUs that llama.cpp was built for, this is faster than torch with 16-bit
weights (docs/decisions.md). llama.cpp only computes passes: voiceloop does the tokenizing, sampling
and verification. Each conversation has a llama.cpp context with one sequence, and forgets rows by
removing their positions.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.gguf.libllama import library
from voiceloop.llm.model.cache import KvCache
from voiceloop.threads import free_threads

ROWS = 64
"""Maximum number of rows of a pass."""
STEP_WORK = 100e9
"""Maximum work of one step of a prompt, in weights times rows. This work takes half a second on two
cores. Passes over fewer rows take longer for each row."""


class GgufModel:
    """A GGUF file that llama.cpp has loaded."""

    def __init__(self, file: Path, name: str) -> None:
        """Load `file`, which the user calls `name`.

        Raises ModelCorrupt if llama.cpp cannot read it, and EngineError for a model whose contexts
        cannot be rolled back.
        """
        lib = library()
        params = lib.llama_model_default_params()
        params.n_gpu_layers = -1 if lib.llama_supports_gpu_offload() else 0
        # Products by AMX crash if a compiler has left the tiles unconfigured, which cannot be
        # detected (ggml-org/llama.cpp 20824, 26954).
        params.use_extra_bufts = b"AMX_INT8 = 1" not in lib.llama_print_system_info()
        self.file = file
        self.handle = lib.llama_model_load_from_file(str(file).encode(), params)
        """The C library's pointer, `llama_model *`."""
        if not self.handle:
            raise ModelCorrupt(
                f"llama.cpp cannot read the model '{name}'", "download or copy it again"
            )
        weakref.finalize(self, lib.llama_model_free, self.handle)
        if lib.llama_model_is_recurrent(self.handle) or lib.llama_model_is_hybrid(self.handle):
            raise EngineError(
                f"the model '{name}' has recurrent layers, whose caches cannot be rolled back",
                "choose a causal model with attention in every layer (Llama, Qwen3, Gemma 3, …)",
            )
        self.parameters: int = lib.llama_model_n_params(self.handle)
        self.nbytes: int = lib.llama_model_size(self.handle)
        self.rows: int = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.handle))
        """The length of a row of logits, in tokens."""
        self.longest: int = lib.llama_model_n_ctx_train(self.handle)
        """The longest sequence that the model was trained for, in tokens."""
        self.row_bytes = _row_bytes(lib, self.handle)
        """The bytes that one token takes in a context."""


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
            cache.context = _Context(self._model, cache.capacity)
            cache.nbytes = cache.capacity * self._model.row_bytes
        context: _Context = cache.context
        context.cut(cache.length)
        tokens: list[int] = ids.tolist()
        logits: Tensor | None = None
        for at in range(0, len(tokens), ROWS):
            piece = tokens[at : at + ROWS]
            logits = context.extend(piece, min(keep, len(piece)))
        cache.advance(len(tokens))
        assert logits is not None and len(logits) == keep, "what is wanted is of one pass"
        return logits[:, : self.vocab]


def _row_bytes(lib: Any, handle: Any) -> int:
    dim = lib.llama_model_n_embd(handle) // lib.llama_model_n_head(handle)
    numbers = 2 * lib.llama_model_n_layer(handle) * lib.llama_model_n_head_kv(handle) * dim
    return 2 * numbers  # of 16 bits each


class _Context:
    """One sequence of a model: its keys and values, and buffers for a pass."""

    def __init__(self, model: GgufModel, capacity: int) -> None:
        """Make room for `capacity` rows. Raises MemoryError."""
        lib = library()
        params = lib.llama_context_default_params()
        params.n_ctx = capacity
        params.n_batch = params.n_ubatch = min(ROWS, capacity)
        params.swa_full = True  # a rollback may uncover rows before the window
        self._model = model  # this keeps the model until its contexts are freed
        self._vocab = model.rows
        self._handle = lib.llama_init_from_model(model.handle, params)
        if not self._handle:
            raise MemoryError("llama.cpp has no memory for a context")
        weakref.finalize(self, lib.llama_free, self._handle)
        self._batch = lib.llama_batch_init(params.n_batch, 0, 1)
        weakref.finalize(self, lib.llama_batch_free, self._batch)
        self._length = 0
        """The number of rows that the context holds."""

    def cut(self, length: int) -> None:
        """Keep only the first `length` rows."""
        if length < self._length:
            lib = library()
            lib.llama_memory_seq_rm(lib.llama_get_memory(self._handle), 0, length, -1)
            self._length = length

    def extend(self, tokens: list[int], keep: int) -> Tensor:
        """Compute a row for each of `tokens`; return the logits of the last `keep`, float32
        [keep, vocab]. Raises MemoryError if llama.cpp could not compute them."""
        lib, batch, count = library(), self._batch, len(tokens)
        batch.n_tokens = count
        for row, token in enumerate(tokens):
            batch.token[row], batch.pos[row] = token, self._length + row
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
            batch.logits[row] = row >= count - keep
        threads = free_threads()
        lib.llama_set_n_threads(self._handle, threads, threads)
        status = lib.llama_decode(self._handle, batch)
        if status:
            raise MemoryError(f"llama.cpp computed nothing: llama_decode returned {status}")
        self._length += count
        found = np.ctypeslib.as_array(lib.llama_get_logits(self._handle), (keep, self._vocab))
        return torch.from_numpy(found).clone()
