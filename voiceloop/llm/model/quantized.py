"""Matrix products with weights in 8 or 4 bits, through torchao. Such weights take less memory.

Rounding weights changes a model's replies. Activations are not rounded. Otherwise the logits of a
token would depend on the other rows of the pass, and a reply would depend on the draft tokens. This
module does not know which weights belong to which layer.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from voiceloop.config import Quantize
from voiceloop.errors import EngineError, MissingExtra

TORCHAO = "torchao.quantization"
"""The module of torchao that quantises. It is imported at its first use: torchao is an extra, and
its import takes seconds."""
GROUPS = (128, 64, 32)
"""Numbers of weights that may share a scale in 4 bits. The largest number that divides a row is
used."""


def check_quantize(how: Quantize, device: torch.device) -> None:
    """Raise EngineError if weights cannot be quantised on `device`, or if torchao is missing."""
    if how == "none":
        return
    if device.type != "cuda":
        raise EngineError(
            f"llm.quantize = {how} needs CUDA: on {device.type}, 16 bits are multiplied quicker",
            "set llm.quantize to none; a smaller model takes less memory",
        )
    if find_spec("torchao") is None:
        raise MissingExtra("torchao", "quantize")


def unquantizable(kind: str) -> EngineError:
    """Make the error for a model of type `kind`. transformers runs such models, so their matrices
    cannot be quantised here."""
    return EngineError(
        f"weights of type '{kind}' are not rounded here: transformers runs such models",
        "set llm.quantize to none, or choose a Llama, Mistral, Qwen, Gemma 3 or SmolLM3 model",
    )


class WeightOnly:
    """A matrix product by torchao. Weights have 8 or 4 bits; activations keep their type."""

    def __init__(self, weight: Tensor, bias: Tensor | None, how: Quantize) -> None:
        ao: Any = import_module(TORCHAO)
        holder = nn.Linear(*weight.shape[::-1], bias=False, device="meta")
        holder.weight = nn.Parameter(weight.detach(), requires_grad=False)
        if how == "int8":
            ao.quantize_(holder, ao.Int8WeightOnlyConfig(set_inductor_config=False))
            self.nbytes = weight.numel()
        else:
            self.nbytes = _in_four_bits(holder, weight)
        self._weight = holder.weight
        self._bias = None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)

    def add(self, x: Tensor, to: Tensor) -> Tensor:
        return self(x).add_(to)


def group_of(width: int) -> int | None:
    """Return how many of a row's `width` weights share a scale in 4 bits; None if no group fits."""
    return next((group for group in GROUPS if width % group == 0), None)


def _in_four_bits(holder: nn.Linear, weight: Tensor) -> int:
    """Round the holder's weight to 4 bits if a group size divides its rows. Return the size of the
    weight in bytes."""
    ao: Any = import_module(TORCHAO)
    packings: Any = import_module(f"{TORCHAO}.quantize_.workflows").Int4PackingFormat
    group = group_of(weight.shape[1])
    if group is None:
        return weight.nbytes
    holder.to(torch.bfloat16)  # the only type that the kernel knows
    packing = packings.TILE_PACKED_TO_4D  # torch's own kernel: no other library
    config = ao.Int4WeightOnlyConfig(group, set_inductor_config=False, int4_packing_format=packing)
    ao.quantize_(holder, config)
    return weight.numel() // 2 + 4 * weight.numel() // group
