"""Opens GGUF files by llama.cpp, and reads what they say of themselves.

A file has weights, a vocabulary, a chat template and settings, such as `llama.block_count`.
llama.cpp reads all of them, so its list of kinds of models is the only one. Rows of a matrix, such
as the embeddings of tokens, are read here; the matrix stays as it is stored.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import weakref
from ctypes import POINTER, c_float, c_int64, c_void_p, create_string_buffer
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.gguf.libllama import complaints, extended, library, structure

_Widen = ctypes.CFUNCTYPE(None, c_void_p, POINTER(c_float), c_int64)


class StoredMatrix:
    """A matrix in a GGUF file, whose rows are read when they are asked for."""

    def __init__(self, file: Path, *names: str) -> None:
        """Find the first matrix of `names` in `file`. Raises EngineError if it has none of them."""
        lib = extended("gguf")
        opened = lib.gguf_init_from_file(str(file).encode(), structure("gguf_init_params")(True))
        try:
            found = [lib.gguf_find_tensor(opened, name.encode()) for name in names]
            at = next((index for index in found if index >= 0), None)
            if at is None:
                raise EngineError(
                    f"{file} has no {names[0]}, which a trained draft needs",
                    "name the model's first file, or set llm.draft to auto",
                )
            sizes = lib.gguf_get_tensor_ne(opened, at)
            self.width, self._count = int(sizes[0]), int(sizes[1])
            kind = lib.gguf_get_tensor_type(opened, at)
            self._begin = lib.gguf_get_data_offset(opened) + lib.gguf_get_tensor_offset(opened, at)
        finally:
            lib.gguf_free(opened)
        self._row_bytes: int = lib.ggml_row_size(kind, self.width)
        widen = lib.ggml_get_type_traits(kind).contents.to_float
        self._widen = _Widen(widen) if widen else None  # float32 is not widened
        with file.open("rb") as content:
            self._content = mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return the rows with the numbers `rows`, float32 [*rows.shape, width]."""
        numbers = rows.flatten().tolist()
        found = np.empty((len(numbers), self.width), np.float32)
        for place, number in enumerate(numbers):
            begin = self._begin + number * self._row_bytes
            raw = self._content[begin : begin + self._row_bytes]
            if self._widen is None:
                found[place] = np.frombuffer(raw, np.float32)
            else:
                to = found[place].ctypes.data_as(POINTER(c_float))
                self._widen(raw, to, self.width)
        return torch.from_numpy(found).view(*rows.shape, self.width)


ROWS = 64
"""Maximum number of rows of a pass."""
SUFFIX = ".gguf"
ASSISTANT = "gemma4-assistant"
"""The kind of models that draft for Gemma 4 (`draft.featuredraft`)."""
_NO_CHAT = {
    "clip": "is a projector for pictures or sound, not a language model",
    ASSISTANT: "is a draft for another model",
    "eagle3": "is a draft for another model",
    "dflash": "is a draft for another model",
}
"""What is wrong with kinds of models that cannot reply, by architecture."""
_UNKNOWN = "unknown model architecture", "unknown pre-tokenizer"
"""Beginnings of llama.cpp's messages about files that a newer llama.cpp may know."""
_WITH_HEAD = ("qwen35",)
"""The kinds of models whose MTP layers were tried."""
_EMBEDDING = "token_embd.weight"
_HEADER = 64 << 20
"""Number of bytes at the beginning of a file in which the name of an MTP layer is searched for."""
_LONGEST = 1 << 16
"""Maximum length of a setting's value, in bytes."""


def gguf_in(path: Path) -> Path | None:
    """Return the GGUF file that `path` is, or the only one in the folder `path`; None otherwise."""
    found = [path] if path.is_file() else [*path.glob(f"*{SUFFIX}")]
    return found[0] if len(found) == 1 and found[0].suffix == SUFFIX else None


class GgufModel:
    """A GGUF file that llama.cpp has opened."""

    def __init__(
        self, file: Path, name: str, *, weights: bool = True, assistant: bool = False
    ) -> None:
        """Open `file`, which the user calls `name`. Without `weights`, only its vocabulary and
        settings are read. An assistant is opened only if `assistant` allows it.

        Raises ModelCorrupt for a damaged file, MemoryError, and EngineError for a model that is not
        known to llama.cpp or does not write one token after the other.
        """
        lib = library()
        params = lib.llama_model_default_params()
        params.n_gpu_layers = -1 if lib.llama_supports_gpu_offload() else 0
        params.vocab_only = not weights
        params.load_mtp = True
        # Products by AMX crash if a compiler has left the tiles unconfigured, which cannot be
        # detected (ggml-org/llama.cpp 20824, 26954).
        params.use_extra_bufts = b"AMX_INT8 = 1" not in lib.llama_print_system_info()
        self.file = file
        complaints()
        self.handle = lib.llama_model_load_from_file(str(file).encode(), params)
        """The C library's pointer, `llama_model *`."""
        if not self.handle:
            raise _refusal(name, complaints())
        weakref.finalize(self, lib.llama_model_free, self.handle)
        self.kind = self.setting("general.architecture") or ""
        """The kind of the model, e.g. `llama` or `qwen35`."""
        if not (assistant and self.kind == ASSISTANT):
            self._check(lib, name)
        self.rolls_back = not (
            lib.llama_model_is_recurrent(self.handle) or lib.llama_model_is_hybrid(self.handle)
        )
        """Whether contexts can forget any number of rows: no layer is recurrent."""
        self.has_head = self.kind in _WITH_HEAD and self._has_head(lib)
        """Whether the file has an MTP layer (`context.HeadContext`)."""
        self.width: int = lib.llama_model_n_embd(self.handle)
        """The length of a feature."""
        self.parameters: int = lib.llama_model_n_params(self.handle)
        self.nbytes: int = lib.llama_model_size(self.handle) or file.stat().st_size
        self.vocabulary = lib.llama_model_get_vocab(self.handle)
        """The C library's pointer to the vocabulary, which belongs to the model."""
        self.rows: int = lib.llama_vocab_n_tokens(self.vocabulary)
        """The length of a row of logits, in tokens."""
        self.longest = self.number("context_length")
        """The longest sequence that the model was trained for, in tokens; None if unknown."""

    def new_context(self, owner: object, params: Any) -> int:
        """Make a context of llama.cpp, and return its pointer. It is freed with its `owner`, before
        contexts that were made earlier for the same one. Raises MemoryError."""
        lib = library()
        handle: int | None = lib.llama_init_from_model(self.handle, params)
        if not handle:
            raise MemoryError("llama.cpp has no memory for a context")
        weakref.finalize(owner, lib.llama_free, handle)
        return handle

    def setting(self, name: str) -> str | None:
        """Return a setting of the file as text, arrays as JSON; None if the file lacks it."""
        value = create_string_buffer(_LONGEST)
        found = library().llama_model_meta_val_str(self.handle, name.encode(), value, _LONGEST)
        return None if found < 0 else value.value.decode("utf-8", "replace")

    def number(self, name: str) -> int | None:
        """Return a number that belongs to the model's kind, such as `block_count`. An array of
        numbers, one for each layer, gives its sum. None if the file lacks it."""
        text = self.setting(f"{self.kind}.{name}")
        try:
            value = json.loads(text or "null")
            return value if value is None else int(sum(value) if isinstance(value, list) else value)
        except (ValueError, TypeError):  # not a number
            return None

    @property
    def shape(self) -> tuple[str | int | None, ...]:
        """The model's kind and the sizes of its parts, in the order of `loading.SHAPE`."""
        sizes = "block_count", "embedding_length", "feed_forward_length", "attention.head_count"
        return self.kind, *map(self.number, (*sizes, "attention.head_count_kv"))

    @cached_property
    def embedding(self) -> StoredMatrix:
        """The embeddings of the tokens."""
        return StoredMatrix(self.file, _EMBEDDING)

    @cached_property
    def head(self) -> StoredMatrix:
        """The matrix by which logits are computed from features: often the embeddings."""
        return StoredMatrix(self.file, "output.weight", _EMBEDDING)

    @cached_property
    def row_bytes(self) -> int:
        """The bytes that one token takes in a context; 0 if the file does not give the sizes."""
        _, layers, width, _, heads, _ = self.shape
        groups = self.number("attention.head_count_kv") or heads
        if not (layers and width and heads and groups):
            return 0
        listed = "[" in (self.setting(f"{self.kind}.attention.head_count_kv") or "")
        both = [self.number(f"attention.{part}_length") for part in ("key", "value")]
        dims = sum(dim or int(width) // int(heads) for dim in both)
        return 2 * dims * int(groups) * (1 if listed else int(layers))  # numbers of 16 bits

    def _has_head(self, lib: Any) -> bool:
        """Return whether the settings tell of one MTP layer, and its weights are there. Without
        them, llama.cpp would end the process."""
        if lib.llama_model_n_layer_nextn(self.handle) != 1:
            return False
        with self.file.open("rb") as content:
            return b".nextn.eh_proj.weight" in content.read(_HEADER)

    def _check(self, lib: Any, name: str) -> None:
        """Raise EngineError for a model that cannot write a reply token by token."""
        why = _NO_CHAT.get(self.kind)
        if lib.llama_model_is_diffusion(self.handle):
            why = "writes all words of a reply at once (a diffusion model)"
        elif not why and lib.llama_model_has_encoder(self.handle):
            why = "is an encoder, or an encoder-decoder"
        elif self.setting(f"{self.kind}.attention.causal") == "false":
            why = "reads in both directions, as models for searching do"
        if why:
            raise EngineError(f"the model '{name}' {why}", "choose a chat model")


def _refusal(name: str, said: list[str]) -> Exception:
    """Return the error for a file that llama.cpp has not opened. `said` are its messages."""
    begin = "error loading model: "
    why = next((line.removeprefix(begin) for line in said if line.startswith(begin)), "")
    why = why.removeprefix("error loading model vocabulary: ")
    if why.startswith("CLIP"):
        return EngineError(f"the model '{name}' {_NO_CHAT['clip']}", "choose a chat model")
    if why.startswith(_UNKNOWN):
        return EngineError(
            f"the model '{name}' is not known to this llama.cpp: {why}",
            "choose another, or a newer voiceloop",
        )
    if "alloc" in why or "memory" in why:
        return MemoryError(why)
    detail = next((line for line in said if not line.startswith(("failed", begin))), why)
    return ModelCorrupt(
        f"llama.cpp cannot read the model '{name}': {detail or 'it gives no reason'}",
        "download or copy it again",
    )
