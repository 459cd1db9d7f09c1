"""The operations of a decoder's pass, computed by torch on any device.

A pass of a small model over a few rows spends its time on reading weights and on calling torch, so
this module reads few bytes and makes few calls. All forms of a product give the same result up to
the rounding of their type. The order of a sum depends on the number of rows in a pass, so the
rounding of a row may depend on that number too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

LARGE = 2**18
"""Minimum number of weights of a matrix that is stored in half precision. For smaller matrices this
does not pay."""

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
}
"""The activations of gated linear units, by their names in config.json."""
_PIECE = 4096
"""The number of rows of a matrix that are inspected at once."""


class Linear(Protocol):
    """A matrix product with fixed weights."""

    nbytes: int
    """Bytes of the weights."""

    def __call__(self, x: Tensor) -> Tensor:
        """Return x W^T + b [rows, out] for `x` [rows, in]. Without a bias, b is 0."""
        ...

    def add(self, x: Tensor, to: Tensor) -> Tensor:
        """Return `to` + x W^T + b; `to` is [rows, out]."""
        ...


def halves() -> bool:
    """Tell whether torch can multiply 16-bit weights on this processor and sum in 32 bits."""
    return torch.backends.quantized.engine in ("x86", "fbgemm")


def linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """Build the product with `weight` [out, in] and `bias` [out].

    On a CPU, large single-precision matrices are stored in half precision if the processor supports
    it and no weight loses accuracy; this holds for most checkpoints.
    """
    large = weight.numel() >= LARGE
    on_cpu = weight.device.type == "cpu"
    packs = on_cpu and large and weight.dtype == torch.float32 and halves()
    scale = _half_scale(weight) if packs else None
    return Whole(weight, bias) if scale is None else _Halved(weight, bias, scale)


class Whole:
    """A product whose weights are stored in the type of the arithmetic."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight.detach().t()
        """The weights, transposed: [in, out]."""
        if weight.device.type == "cpu":  # products of several rows take half as long in this layout
            self.weight = self.weight.contiguous()
        self.nbytes = weight.nbytes
        self.bias = None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        if self.bias is None:
            return torch.mm(x, self.weight)
        return torch.addmm(self.bias, x, self.weight)

    def add(self, x: Tensor, to: Tensor) -> Tensor:
        product = torch.addmm(to, x, self.weight)
        return product if self.bias is None else product.add_(self.bias)


class _Halved:
    """FBGEMM's product of single-precision rows with half-precision weights.

    It sums in single precision, and reads half as many bytes as a product in single precision. Each
    draft token adds a row to a pass. A pass of SmolLM2-135M over 1, 4, 8 and 12 rows takes 13, 16,
    20 and 26 ms on an AMD EPYC with AVX-512. With only AVX2, 1 row takes 26 to 35 ms; 4, 8 and 16
    rows take 38, 63 and 82 ms.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, scale: float) -> None:
        self.nbytes = 2 * weight.numel()
        self._inverse = 1 / scale
        scaled = weight if scale == 1 else weight * scale
        self._packed = torch.ops.quantized.linear_prepack_fp16(
            scaled.detach().float(), None if bias is None else bias.detach().float()
        )
        # This is the function that the operator calls. Before that, the operator looks for
        # arguments that only tracing has, which takes 2 us more in a product of 34 us.
        self._product = torch.ops.quantized.linear_dynamic_fp16.default.op

    def __call__(self, x: Tensor) -> Tensor:
        return self._product(x if self._inverse == 1 else x * self._inverse, self._packed)

    def add(self, x: Tensor, to: Tensor) -> Tensor:
        return self(x).add_(to)


def _half_scale(weight: Tensor) -> float | None:
    """Find a power of two s, 1 if possible, such that half precision holds s times `weight`.

    Every entry w must satisfy |half(s w) - s w| <= 2^-26 max|s w|, a quarter of the rounding error
    of single precision at the largest entry. Returns None if no s satisfies this. Weights that were
    bfloat16 satisfy it: bfloat16 has fewer digits, and s brings them into the range of half
    precision.
    """
    pieces = weight.split(_PIECE)  # to compare all at once would take more memory than the result
    largest = max(float(piece.abs().amax()) for piece in pieces)
    if not 0 < largest < math.inf:
        return None
    # This check is quick, and most checkpoints pass it.
    if all(torch.equal(piece.half().float(), piece) for piece in pieces):
        return 1.0
    for scale in (1.0, 2.0 ** (14 - math.frexp(largest)[1])):
        scaled = (piece * scale for piece in pieces)
        lost = max(float((piece.half().float() - piece).abs().amax()) for piece in scaled)
        if lost <= largest * scale * 2**-26:
            return scale
    return None


class Norm:
    """RMSNorm over the last dimension (Zhang and Sennrich 2019)."""

    def __init__(self, weight: Tensor, eps: float, *, raised: bool = False) -> None:
        """With `raised` the factor is 1 + `weight`, as in Gemma. For weights in 16 bits this sum is
        kept in 32 bits, because 16 bits would round it."""
        weight = weight.detach()
        self._exact = raised and weight.dtype.itemsize < 4
        self.weight = weight.float() + 1 if self._exact else weight + 1 if raised else weight
        self.eps = eps
        self._shape = weight.shape
        self._fused = weight.device.type != "cpu" or weight.dtype.itemsize < 4
        # On the CPU torch has no single call for RMSNorm. These are the constant parts of
        # x w / sqrt(mean(x²) + eps), with numerator and denominator multiplied by sqrt(n).
        size = weight.numel()
        self._scaled = self.weight * math.sqrt(size)
        self._floor = torch.tensor(math.sqrt(size * eps), dtype=weight.dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise `x` [..., n]. The result has the shape of `x`."""
        if self._exact:
            return F.rms_norm(x.float(), self._shape, self.weight, self.eps).type_as(x)
        if self._fused:
            return F.rms_norm(x, self._shape, self.weight, self.eps)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x.div(length.hypot_(self._floor)).mul_(self._scaled)


class Operations:
    """The arithmetic of one pass over a few rows, by calls of torch."""

    def product(self, weights: Linear, x: Tensor, to: Tensor | None = None) -> Tensor:
        """Return `to` + x W^T + b [rows, out]; if `to` is None, it counts as 0.

        `x` is [rows, in] with contiguous rows, `to` is contiguous.
        """
        return weights(x) if to is None else weights.add(x, to)

    def rms_norm(self, norm: Norm, x: Tensor) -> Tensor:
        """Return w x / sqrt(mean(x^2) + eps) for each vector of `x` [rows, size] or
        [rows, heads, size]; w and eps are those of `norm`."""
        return norm(x)

    def apply_rotary(self, x: Tensor, cos: Tensor, sin: Tensor) -> None:
        """Rotate the heads of `x` [rows, heads, dim] in place, by rotary position embedding.

        With halves x1, x2 of a head: x1 = x1 cos + x2 sin, x2 = x2 cos + x1 sin. `cos` and `sin`
        are [rows, 1, dim]; the first half of `sin` is negated already.
        """
        torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin, out=x)

    def glu(self, x: Tensor, activation: str) -> Tensor:
        """Return act(x1) * x2 [rows, size] for the halves x1, x2 of `x` [rows, 2 size].

        `activation` is one of `ACTIVATIONS`: SwiGLU and GeGLU (Shazeer 2020, arXiv 2002.05202).
        """
        gate, up = x.chunk(2, -1)
        return ACTIVATIONS[activation](gate).mul_(up)


PLAIN = Operations()
