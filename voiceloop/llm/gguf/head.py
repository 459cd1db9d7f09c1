"""Computes what predicts one token further than the model: the MTP layer in its GGUF file, or an
assistant in another file.

The layer reads a token and the model's feature before it, and predicts the next token. With its own
feature it goes on from there (DeepSeek-V3, arXiv 2412.19437, section 2.2). llama.cpp runs it in a
context of its own, with its own keys and values.
"""

from __future__ import annotations

import ctypes
import weakref
from ctypes import POINTER, Structure, c_bool, c_float, c_int32, c_size_t, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from voiceloop.llm.gguf.file import ROWS, GgufModel
from voiceloop.llm.gguf.libllama import declare, library
from voiceloop.threads import free_threads

if TYPE_CHECKING:
    from voiceloop.llm.gguf.context import Context

_MTP = 1
"""The type of contexts for such layers, LLAMA_CONTEXT_TYPE_MTP."""
_DECODE = 1
"""The type of passes that write to a context's memory, LLAMA_PROCESS_TYPE_DECODE."""
_SET = "_Z26llama_set_embeddings_nextnP13llama_contextbb"
_GET = "_Z26llama_get_embeddings_nextnP13llama_context"
"""Functions in C++ that turn a context's features on, and that return them. They are not in the C
header yet (`src/llama-ext.h`)."""


class Embedding(Structure):
    """Rows of numbers: `struct llama_embd`."""

    _fields_ = [("data", POINTER(c_float)), ("n_rows", c_size_t), ("n_embd", c_size_t)]


@cache
def _extended() -> Any:
    """Return the library, with the functions declared that only this module needs."""
    return declare(
        library(),
        {
            _SET: (None, c_void_p, c_bool, c_bool),
            _GET: (POINTER(c_float), c_void_p),
            "llama_batch_ext_init": (c_void_p, c_void_p),
            "llama_batch_ext_free": (None, c_void_p),
            "llama_batch_ext_clear": (None, c_void_p),
            "llama_batch_ext_add_token": (c_int32, c_void_p, c_int32, c_int32),
            "llama_batch_ext_set_embd_state": (c_bool, c_void_p, c_int32, Embedding),
            "llama_batch_ext_set_output_logits": (c_bool, c_void_p, c_int32, c_bool),
            "llama_batch_ext_set_pos": (c_bool, c_void_p, c_int32, POINTER(c_int32)),
            "llama_process": (c_int32, c_void_p, c_int32, c_void_p),
        },
    )


def give_features(handle: int) -> None:
    """Let the passes of a context give what the layer reads of each row: the input of the norm
    before the head."""
    getattr(_extended(), _SET)(handle, True, False)


def features(handle: int, rows: int, width: int) -> Tensor:
    """Return what `give_features` asked for, of the last pass: float32 [rows, width]."""
    found = getattr(_extended(), _GET)(handle)
    return torch.from_numpy(np.ctypeslib.as_array(found, (rows, width))).clone()


class HeadContext:
    """One sequence of an MTP layer or of an assistant."""

    def __init__(self, model: GgufModel, capacity: int, other: Context | None = None) -> None:
        """Make room for `capacity` rows, or attend to those of `other`, with which this context is
        freed. Raises MemoryError."""
        lib = _extended()
        params = lib.llama_context_default_params()
        params.n_ctx, params.ctx_type = capacity, _MTP
        params.ctx_other = other and other.handle
        params.n_batch = params.n_ubatch = min(ROWS, capacity)
        self._model = model  # this keeps the model until its contexts are freed
        owner = other or self
        self._handle = model.new_context(owner, params)
        give_features(self._handle)
        self._batch = lib.llama_batch_ext_init(self._handle)
        weakref.finalize(owner, lib.llama_batch_ext_free, self._batch)
        self._memory = lib.llama_get_memory(self._handle)
        self._length = 0
        self.nbytes = capacity * model.row_bytes // max(1, model.number("block_count") or 1)

    def cut(self, length: int) -> None:
        """Keep only the first `length` rows."""
        if length < self._length:
            if not library().llama_memory_seq_rm(self._memory, 0, length, -1):
                raise MemoryError("llama.cpp cannot forget rows of an MTP layer")
            self._length = length

    def extend(
        self, tokens: list[int], before: Tensor, begin: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute a row for each of `tokens`, at most `ROWS`; `before` [rows, width] are the
        features before them. The first token has the position `begin`, or follows the rows so far.
        Return the logits and the feature after the last token, float32 [1, vocab] and [1, width].
        Raises MemoryError if llama.cpp could not compute them."""
        lib, batch, model = _extended(), self._batch, self._model
        rows = np.ascontiguousarray(before.numpy(), np.float32)
        lib.llama_batch_ext_clear(batch)
        for row, token in enumerate(tokens):
            at = lib.llama_batch_ext_add_token(batch, 0, token)
            place = ctypes.c_int32((self._length if begin is None else begin) + row)
            lib.llama_batch_ext_set_pos(batch, at, ctypes.byref(place))
            data = rows[row].ctypes.data_as(POINTER(c_float))
            lib.llama_batch_ext_set_embd_state(batch, at, Embedding(data, 1, rows.shape[1]))
            lib.llama_batch_ext_set_output_logits(batch, at, row == len(tokens) - 1)
        threads = free_threads()
        lib.llama_set_n_threads(self._handle, threads, threads)
        if status := lib.llama_process(self._handle, _DECODE, batch):
            raise MemoryError(f"llama.cpp computed nothing: llama_process returned {status}")
        self._length += len(tokens)
        found = np.ctypeslib.as_array(lib.llama_get_logits(self._handle), (1, model.rows))
        return torch.from_numpy(found).clone(), features(self._handle, *rows.shape)[-1:]
