"""Reads rows of a matrix in a GGUF file, such as the embeddings of tokens. The matrix stays as it
is stored.
"""

from __future__ import annotations

import ctypes
import mmap
from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_void_p,
)
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from voiceloop.errors import EngineError
from voiceloop.llm.gguf.libllama import declare, library

_Widen = ctypes.CFUNCTYPE(None, c_void_p, POINTER(c_float), c_int64)


class _FileReading(Structure):
    """How a file is read: `struct gguf_init_params`."""

    _fields_ = [("no_alloc", c_bool), ("ctx", c_void_p)]


class _Type(Structure):
    """A type of numbers: `struct ggml_type_traits`."""

    _fields_ = [
        ("type_name", c_char_p),
        ("blck_size", c_int64),
        ("blck_size_interleave", c_int64),
        ("type_size", c_size_t),
        ("is_quantized", c_bool),
        ("to_float", c_void_p),
        ("from_float_ref", c_void_p),
    ]


@cache
def _extended() -> Any:
    """Return the library, with the functions declared that only this module needs."""
    return declare(
        library(),
        {
            "gguf_init_from_file": (c_void_p, c_char_p, _FileReading),
            "gguf_free": (None, c_void_p),
            "gguf_find_tensor": (c_int64, c_void_p, c_char_p),
            "gguf_get_data_offset": (c_size_t, c_void_p),
            "gguf_get_tensor_offset": (c_size_t, c_void_p, c_int64),
            "gguf_get_tensor_type": (c_int32, c_void_p, c_int64),
            "gguf_get_tensor_ne": (POINTER(c_int64), c_void_p, c_int64),
            "ggml_row_size": (c_size_t, c_int32, c_int64),
            "ggml_get_type_traits": (POINTER(_Type), c_int32),
        },
    )


class StoredMatrix:
    """A matrix in a GGUF file, whose rows are read when they are asked for."""

    def __init__(self, file: Path, *names: str) -> None:
        """Find the first matrix of `names` in `file`. Raises EngineError if it has none of them."""
        lib = _extended()
        opened = lib.gguf_init_from_file(str(file).encode(), _FileReading(True, None))
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
