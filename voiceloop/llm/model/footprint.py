"""How much memory a model will take, from the headers of its files: no weight is read.

What is counted is what stays: matrices in the form that `plain` keeps them in, the rest in the
type that is computed in, and the rows of caches. What does not say how large it is counts nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from voiceloop.catalog.convert import GGUF
from voiceloop.config import Quantize
from voiceloop.llm.model.checkpoint import EMBEDDING, HEAD, LEAN, dtype_of, read_json, weight_files
from voiceloop.llm.model.plain import LARGE, halves
from voiceloop.llm.model.quantized import group_of

_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16}
"""Of the types in headers; all others have 8."""
_BLOCK = 512
"""FBGEMM keeps rows of weights in blocks of so many."""
_LIMIT = 100 << 20
"""Longest header, as the format has it."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a model's files say of its size."""

    shapes: Mapping[str, tuple[int, ...]]
    """Of every weight."""
    stored: int
    """Bytes of all weights in the files."""
    config: Mapping[str, Any]
    """config.json."""
    as_is: bool = False
    """The weights stay as they are stored, and caches are in 16 bits: llama.cpp runs it."""

    def weights(self, device: str, dtype: torch.dtype | None, how: Quantize) -> int:
        """Bytes of the weights on a device of that type; `dtype` None is the checkpoint's own."""
        if self.as_is or "quantization_config" in self.config:  # it stays what it is
            return self.stored
        dtype = dtype or dtype_of(self.config)
        if dtype is None:
            return self.stored
        lean = self.config.get("model_type") in LEAN
        halved = device == "cpu" and dtype == torch.float32 and halves() and self._narrow
        total = 0
        for name, shape in self.shapes.items():
            matrix = lean and name != EMBEDDING and len(shape) == 2
            total += _matrix(shape, dtype, how, halved) if matrix else _plain(shape, dtype)
        if lean and HEAD not in self.shapes and EMBEDDING in self.shapes:
            kept = _matrix(self.shapes[EMBEDDING], dtype, how, halved)
            alone = _plain(self.shapes[EMBEDDING], dtype)
            # Where the head is in another form than the embedding, or turned, both are there.
            total += kept if device == "cpu" or kept != alone else 0
        return total

    def row(self, device: str, dtype: torch.dtype | None) -> int:
        """Bytes of a token in a cache; 0 where nothing tells."""
        text = self.config.get("text_config") or self.config
        heads = text.get("num_attention_heads")
        hidden, layers = text.get("hidden_size"), text.get("num_hidden_layers")
        if not (heads and hidden and layers):
            return 0
        groups = text.get("num_key_value_heads") or heads
        dim = text.get("head_dim") or hidden // heads
        kept = torch.float16 if self.as_is else dtype or dtype_of(self.config) or torch.float32
        return 2 * layers * groups * dim * kept.itemsize

    @property
    def longest(self) -> int | None:
        """Tokens that the model can take; None where nothing says."""
        text = self.config.get("text_config") or self.config
        return text.get("max_position_embeddings")

    @property
    def _narrow(self) -> bool:
        """Whether weights are stored in 16 bits or fewer."""
        return self.stored <= 2 * sum(map(math.prod, self.shapes.values()))


def read_footprint(folder: Path, *, as_is: bool = False) -> Footprint | None:
    """What the files in `folder` say; None where they say nothing. A GGUF file is taken `as_is`
    where llama.cpp runs it.

    Whether they are sound is for whoever loads them to tell.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    stored = 0
    try:
        config = read_json(folder / "config.json")
        if as_is and (folder / GGUF).exists():
            # Products in blocks have a second copy of most of the weights.
            return Footprint({}, 2 * (folder / GGUF).stat().st_size, config, as_is=True)
        for file in weight_files(folder):
            for name, entry in _header(file).items():
                if name != "__metadata__":
                    shapes[name] = tuple(entry["shape"])
                    stored += math.prod(entry["shape"]) * _BITS.get(entry["dtype"], 8) // 8
    except Exception:  # files of other people's may hold anything
        return None
    return Footprint(shapes, stored, config) if shapes else None


def slots_for(budget: int, group: int) -> int:
    """Conversations whose caches lie ready on CUDA, for `budget` bytes of `group` bytes each."""
    return max(1, budget // max(1, group))


def _header(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > _LIMIT:
            raise ValueError(f"the header of {file.name} is too long")
        return json.loads(opened.read(length))


def _plain(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    return math.prod(shape) * dtype.itemsize


def _matrix(shape: tuple[int, ...], dtype: torch.dtype, how: Quantize, halved: bool) -> int:
    """Bytes of a matrix [out, in] in the form that it is multiplied in.

    Projections are fused before they are that, and are then larger than what is looked at here.
    """
    out, wide = shape
    numbers = out * wide
    if how == "int8":
        return numbers
    group = group_of(wide) if how == "int4" else None
    if group is not None:
        return numbers // 2 + 4 * numbers // group
    if halved and numbers >= LARGE // 8:
        return 2 * out * -(-wide // _BLOCK) * _BLOCK
    return numbers * dtype.itemsize
