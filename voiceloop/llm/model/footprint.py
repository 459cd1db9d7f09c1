"""Estimates how much memory a model will take, from the headers of its files. No weight is read.

Only lasting memory is counted: matrices in the form in which `plain` keeps them, other weights in
the type of the arithmetic, and the rows of caches. If the files do not give a size, it counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from voiceloop.errors import EngineError
from voiceloop.foreign import parsed
from voiceloop.llm.gguf.file import GgufModel, gguf_in
from voiceloop.llm.model.checkpoint import EMBEDDING, HEAD, LEAN, dtype_of, read_json, weight_files
from voiceloop.llm.model.plain import LARGE, halves

_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16}
"""The number of bits of each type in headers. All other types have 8 bits."""
_BLOCK = 512
"""FBGEMM keeps rows of weights in blocks of this many weights."""
_LIMIT = 100 << 20
"""Maximum length of the header of a safetensors file, in bytes."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The sizes of a model, read from its files."""

    shapes: Mapping[str, tuple[int, ...]]
    """The shape of every weight, by name."""
    stored: int
    """Bytes of all weights in the files."""
    config: Mapping[str, Any]
    """The contents of config.json."""

    def weights(self, device: str, dtype: torch.dtype | None) -> int:
        """Return the size of the weights in memory, in bytes. `device` is a type of device, e.g.
        `cpu`. `dtype` is the type of the arithmetic; None means the type in the checkpoint."""
        if "quantization_config" in self.config:  # weights stay as they are stored
            return self.stored
        dtype = dtype or dtype_of(self.config)
        if dtype is None:
            return self.stored
        lean = self.config.get("model_type") in LEAN
        halved = device == "cpu" and dtype == torch.float32 and halves() and self._narrow
        total = 0
        for name, shape in self.shapes.items():
            matrix = lean and name != EMBEDDING and len(shape) == 2
            total += _matrix(shape, dtype, halved) if matrix else _plain(shape, dtype)
        # On a CPU the head is transposed or halved, so the embedding is kept beside it.
        if lean and device == "cpu" and HEAD not in self.shapes and EMBEDDING in self.shapes:
            total += _matrix(self.shapes[EMBEDDING], dtype, halved)
        return total

    def row(self, device: str, dtype: torch.dtype | None) -> int:
        """Return the bytes that one token takes in a cache; 0 if the files do not give the
        sizes."""
        text = self.config.get("text_config") or self.config
        heads = text.get("num_attention_heads")
        hidden, layers = text.get("hidden_size"), text.get("num_hidden_layers")
        if not (heads and hidden and layers):
            return 0
        groups = text.get("num_key_value_heads") or heads
        dim = text.get("head_dim") or hidden // heads
        kept = dtype or dtype_of(self.config) or torch.float32
        return 2 * layers * groups * dim * kept.itemsize

    @property
    def longest(self) -> int | None:
        """The longest sequence that the model takes, in tokens; None if the files do not give
        it."""
        text = self.config.get("text_config") or self.config
        return text.get("max_position_embeddings")

    @property
    def _narrow(self) -> bool:
        """Whether weights are stored in 16 bits or fewer."""
        return self.stored <= 2 * sum(map(math.prod, self.shapes.values()))


@dataclass(frozen=True, slots=True)
class GgufFootprint:
    """The sizes of a model that llama.cpp runs as it is stored."""

    stored: int
    """Bytes of the file."""
    row_bytes: int
    longest: int | None

    def weights(self, device: str, dtype: torch.dtype | None) -> int:
        """Return the size of the weights in memory, in bytes."""
        return 2 * self.stored  # llama.cpp keeps a second copy of most, for products in blocks

    def row(self, device: str, dtype: torch.dtype | None) -> int:
        """Return the bytes that one token takes in a context."""
        return self.row_bytes


def read_footprint(folder: Path) -> Footprint | GgufFootprint | None:
    """Read the sizes of the model in `folder`, or of a GGUF file. Return None if its files do not
    give them. Damaged files are not reported here, but when they are loaded."""
    if file := gguf_in(folder):
        try:
            model = GgufModel(file, file.name, weights=False)
        except (EngineError, MemoryError):
            return None
        return GgufFootprint(file.stat().st_size, model.row_bytes, model.longest)
    shapes: dict[str, tuple[int, ...]] = {}
    stored = 0
    try:
        config = read_json(folder / "config.json")
        for file in weight_files(folder):
            for name, entry in _header(file).items():
                if name != "__metadata__":
                    shapes[name] = tuple(entry["shape"])
                    stored += math.prod(entry["shape"]) * _BITS.get(entry["dtype"], 8) // 8
    except Exception:  # foreign files may hold anything
        return None
    return Footprint(shapes, stored, config) if shapes else None


def slots_for(budget: int, group: int) -> int:
    """Return how many slots of `group` bytes fit into `budget` bytes, at least 1. Each conversation
    takes one slot."""
    return max(1, budget // max(1, group))


def _header(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > _LIMIT:
            raise ValueError(f"the header of {file.name} is too long")
        return parsed(opened.read(length))


def _plain(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    return math.prod(shape) * dtype.itemsize


def _matrix(shape: tuple[int, ...], dtype: torch.dtype, halved: bool) -> int:
    """Return the size in bytes of a matrix [out, in], in the form in which it is multiplied.

    Projections are fused before they are multiplied, and the fused matrix is larger than each of
    them. So the matrix is compared with an eighth of `LARGE`.
    """
    out, wide = shape
    numbers = out * wide
    if halved and numbers >= LARGE // 8:
        return 2 * out * -(-wide // _BLOCK) * _BLOCK
    return numbers * dtype.itemsize
