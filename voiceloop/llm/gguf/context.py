"""Computes passes of a GGUF model by llama.cpp. Each sequence has a context, which can forget its
newest rows. llama.cpp only computes: voiceloop does the sampling and the verification.

A `HeadContext` computes what predicts one token further than the model: the MTP layer in its file,
or an assistant in another file. The layer reads a token and the model's feature before it, and
predicts the next token. With its own feature it goes on from there (DeepSeek-V3, arXiv 2412.19437,
section 2.2). llama.cpp runs it in a context of its own, with its own keys and values.
"""

from __future__ import annotations

import ctypes
import weakref
from ctypes import POINTER, c_float, create_string_buffer
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from voiceloop.llm.gguf.file import ROWS, GgufModel
from voiceloop.llm.gguf.libllama import extended, library, structure
from voiceloop.process import free_threads

_MTP = 1
"""The type of contexts for such layers, LLAMA_CONTEXT_TYPE_MTP."""
_DECODE = 1
"""The type of passes that write to a context's memory, LLAMA_PROCESS_TYPE_DECODE."""
_SET = "_Z26llama_set_embeddings_nextnP13llama_contextbb"
_GET = "_Z26llama_get_embeddings_nextnP13llama_context"
"""Functions in C++ that turn a context's features on, and that return them. They are not in the C
header yet (`src/llama-ext.h`)."""


def give_features(handle: int) -> None:
    """Let the passes of a context give what the layer reads of each row: the input of the norm
    before the head."""
    getattr(extended("ahead"), _SET)(handle, True, False)


def features(handle: int, rows: int, width: int) -> Tensor:
    """Return what `give_features` asked for, of the last pass: float32 [rows, width]."""
    found = getattr(extended("ahead"), _GET)(handle)
    return torch.from_numpy(np.ctypeslib.as_array(found, (rows, width))).clone()


class HeadContext:
    """One sequence of an MTP layer or of an assistant."""

    def __init__(self, model: GgufModel, capacity: int, other: Context | None = None) -> None:
        """Make room for `capacity` rows, or attend to those of `other`, with which this context is
        freed. Raises MemoryError."""
        lib = extended("ahead")
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
        lib, batch, model = extended("ahead"), self._batch, self._model
        rows = np.ascontiguousarray(before.numpy(), np.float32)
        embedding = structure("llama_embd")
        lib.llama_batch_ext_clear(batch)
        for row, token in enumerate(tokens):
            at = lib.llama_batch_ext_add_token(batch, 0, token)
            place = ctypes.c_int32((self._length if begin is None else begin) + row)
            lib.llama_batch_ext_set_pos(batch, at, ctypes.byref(place))
            data = rows[row].ctypes.data_as(POINTER(c_float))
            lib.llama_batch_ext_set_embd_state(batch, at, embedding(data, 1, rows.shape[1]))
            lib.llama_batch_ext_set_output_logits(batch, at, row == len(tokens) - 1)
        threads = free_threads()
        lib.llama_set_n_threads(self._handle, threads, threads)
        if status := lib.llama_process(self._handle, _DECODE, batch):
            raise MemoryError(f"llama.cpp computed nothing: llama_process returned {status}")
        self._length += len(tokens)
        found = np.ctypeslib.as_array(lib.llama_get_logits(self._handle), (1, model.rows))
        return torch.from_numpy(found).clone(), features(self._handle, *rows.shape)[-1:]


NEAR = 8
"""Maximum number of rows that recurrent layers can forget by themselves. llama.cpp keeps a state
for each."""
STATES = 8
"""Maximum number of copies of recurrent layers' states that a context keeps. One copy takes from
0.2 MB (LFM2-1.2B) to 50 MB (Qwen3.5-4B)."""
_EACH_ROW = 0
"""Features are given for each row, LLAMA_POOLING_TYPE_NONE."""
_WHOLE, _PARTIAL = 0, 1
"""The flags for states of all layers, and of recurrent layers alone
(LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)."""


@dataclass(frozen=True, slots=True)
class SavedRows:
    """A copy of all rows of a context, from which contexts can be made."""

    tokens: tuple[int, ...]
    state: bytes

    def copy(self) -> SavedRows:
        """Return itself, as it never changes."""
        return self


class Context:
    """One sequence of a model: its keys and values, and buffers for a pass.

    A recurrent layer keeps one state instead of a row for each token, so the newest rows cannot
    simply be forgotten. llama.cpp keeps the states before each of the last rows of a pass, and
    `cut` goes back to one of these. If it must go back further, it restores a copy of the state
    that was made earlier, and computes the rows after that anew.
    """

    def __init__(
        self,
        model: GgufModel,
        capacity: int,
        saved: SavedRows | None = None,
        *,
        features: bool = False,
        assistant: GgufModel | None = None,
    ) -> None:
        """Make room for `capacity` rows, and begin with those that were `saved`. With `features`,
        passes also give the inputs of the head. An `assistant` gets a context that attends to the
        rows of this one. Raises MemoryError."""
        lib = library()
        params = lib.llama_context_default_params()
        params.n_ctx = capacity
        params.n_batch = params.n_ubatch = min(ROWS, capacity)
        params.swa_full = True  # a rollback may uncover rows before the window
        if features:
            params.embeddings, params.pooling_type = True, _EACH_ROW
        if not model.rolls_back:  # with more, llama.cpp would end the process
            params.n_rs_seq = max(0, min(NEAR, params.n_ubatch - 2))
        self._model = model  # this keeps the model until its contexts are freed
        self._capacity, self._features = capacity, features
        self.handle = model.new_context(self, params)
        """The C library's pointer, `llama_context *`."""
        # Only now: llama.cpp forgets all rows when another context attends to them.
        self.assistant = assistant and HeadContext(assistant, capacity, self)
        """The context of the assistant, if there is one."""
        self._batch = lib.llama_batch_init(params.n_batch, 0, 1)
        weakref.finalize(self, lib.llama_batch_free, self._batch)
        self._memory = lib.llama_get_memory(self.handle)
        self._tokens = list[int]()
        """The tokens whose rows the context holds."""
        self._near = 0
        """The number of newest rows that the recurrent layers can still forget by themselves. After
        a pass this is one less than its rows: for more, llama.cpp says that it has forgotten them,
        and goes on with a wrong state."""
        self._states = dict[int, bytes]()
        """Copies of the state of the recurrent layers, by the number of rows before them."""
        self._loaded = 0
        """The number of rows that were loaded. They can only be forgotten together: of layers that
        see a window, llama.cpp saves the window alone."""
        if saved is not None:
            self._load(saved)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, and of the states of recurrent layers once a pass has made them."""
        model, states = self._model, 0
        if not model.rolls_back:
            states = library().llama_state_seq_get_size_ext(self.handle, 0, _PARTIAL)
        return self._capacity * model.row_bytes + (1 + NEAR + STATES) * states

    def copy(self) -> SavedRows:
        """Return a copy of all rows."""
        return SavedRows(tuple(self._tokens), self._state(_WHOLE))

    def cut(self, length: int) -> None:
        """Keep only the first `length` rows."""
        if length >= len(self._tokens):
            return
        near = self._model.rolls_back or len(self._tokens) - length <= self._near
        if not (near and length >= self._loaded and self._forget(length)):
            self._restore(length)
        self._near = 0
        del self._tokens[length:]
        self._states = {at: state for at, state in self._states.items() if at <= length}

    def extend(self, tokens: list[int], keep: int) -> Tensor:
        """Compute a row for each of `tokens`; return the logits of the last `keep`, float32
        [keep, vocab]. Raises MemoryError if llama.cpp could not compute them."""
        lib, batch, count, begins = library(), self._batch, len(tokens), len(self._tokens)
        if not self._model.rolls_back and (count > keep or begins - self._last_state() >= ROWS):
            self._save()
        batch.n_tokens = count
        for row, token in enumerate(tokens):
            batch.token[row], batch.pos[row] = token, begins + row
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
            batch.logits[row] = self._features or row >= count - keep
        threads = free_threads()
        lib.llama_set_n_threads(self.handle, threads, threads)
        status = lib.llama_decode(self.handle, batch)
        if status:
            raise MemoryError(f"llama.cpp computed nothing: llama_decode returned {status}")
        self._tokens += tokens
        self._near = count - 1
        given = count if self._features else keep
        found = np.ctypeslib.as_array(lib.llama_get_logits(self.handle), (given, self._model.rows))
        return torch.from_numpy(found[given - keep :]).clone()

    def features(self, rows: int) -> Tensor:
        """Return the inputs of the head in the last pass, which had `rows` rows: float32 [rows,
        width]."""
        found = library().llama_get_embeddings(self.handle)
        return torch.from_numpy(np.ctypeslib.as_array(found, (rows, self._model.width))).clone()

    def _forget(self, length: int) -> bool:
        """Remove the rows from `length` on; return False if llama.cpp cannot do it."""
        return library().llama_memory_seq_rm(self._memory, 0, length, -1)

    def _restore(self, length: int) -> None:
        """Go back to `length` rows by the newest copy of a state before them, or from nothing."""
        lib = library()
        at = max((at for at in self._states if at <= length), default=0)
        state = self._states.get(at)
        if state is not None:
            lib.llama_state_seq_set_data_ext(self.handle, state, len(state), 0, _PARTIAL)
        if state is None or not self._forget(at):
            at = 0
            lib.llama_memory_clear(self._memory, True)
            self._loaded = 0
        again = self._tokens[at:length]
        del self._tokens[at:]
        self._compute(again)

    def _load(self, saved: SavedRows) -> None:
        """Begin with the rows that were `saved`; compute them if llama.cpp cannot load them."""
        lib, state = library(), saved.state
        if lib.llama_state_seq_set_data_ext(self.handle, state, len(state), 0, _WHOLE):
            self._tokens, self._loaded = list(saved.tokens), len(saved.tokens)
        else:
            lib.llama_memory_clear(self._memory, True)
            self._compute(list(saved.tokens))

    def _compute(self, tokens: list[int]) -> None:
        for begin in range(0, len(tokens), ROWS):
            self.extend(tokens[begin : begin + ROWS], 1)

    def _last_state(self) -> int:
        return max(self._states, default=0)

    def _save(self) -> None:
        """Copy the state of the recurrent layers. Of many copies, the first and the newest stay."""
        if not self._tokens or len(self._tokens) in self._states:
            return
        self._states[len(self._tokens)] = self._state(_PARTIAL)
        if len(self._states) > STATES:
            del self._states[sorted(self._states)[1]]

    def _state(self, layers: int) -> bytes:
        """Copy the state of the `layers`, which are `_WHOLE` or `_PARTIAL`."""
        lib = library()
        size = lib.llama_state_seq_get_size_ext(self.handle, 0, layers)
        state = create_string_buffer(size)
        lib.llama_state_seq_get_data_ext(self.handle, state, size, 0, layers)
        return state.raw
