"""The operations of a pass, in the form that is quickest for the weights and where they are.

A pass of a small model over a few rows spends its time on reading weights and on calling torch, so
both are kept few here. All forms compute the same, up to the rounding of their type. How a row is
rounded may depend on the number of rows beside it: processors choose the order of sums by it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import cache, partial
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from voiceloop.config import Quantize
from voiceloop.llm.model.quantized import WeightOnly

logger = logging.getLogger(__name__)

ROUNDED = 0.02
"""How far results in 16 bits may be from those in single precision, of these or of 1."""
LARGE = 2**18
"""Weights from which on a matrix gains more from half the reading than a slower call loses."""

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
}
"""Activations, by the names that configurations give them."""


_PIECE = 4096
"""Rows of a matrix that are looked at in one go."""


class Linear(Protocol):
    """A matrix product with fixed weights."""

    nbytes: int
    """Bytes of the weights."""

    def __call__(self, x: Tensor) -> Tensor:
        """`x` [rows, in] times the weights, and the bias if there is one: [rows, out]."""
        ...

    def add(self, x: Tensor, to: Tensor) -> Tensor:
        """The same, added to `to` [rows, out]."""
        ...


def halves() -> bool:
    """Whether this processor multiplies 16-bit weights into sums of 32."""
    return torch.backends.quantized.engine in ("x86", "fbgemm")


def linear(weight: Tensor, bias: Tensor | None = None, how: Quantize = "none") -> Linear:
    """The product with `weight` [out, in] and `bias` [out].

    Single-precision weights are kept in half precision on a processor that multiplies them so,
    where that makes no difference: checkpoints mostly come in 16 bits. Large matrices are rounded
    to what `how` says, which makes one.
    """
    large = weight.numel() >= LARGE
    if how != "none" and large:
        return WeightOnly(weight, bias, how)
    on_cpu = weight.device.type == "cpu"
    packs = on_cpu and large and weight.dtype == torch.float32 and halves()
    scale = _half_scale(weight) if packs else None
    return Whole(weight, bias) if scale is None else _Halved(weight, bias, scale)


class Whole:
    """Weights in the type they are multiplied in."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight.detach().t()
        """[in, out]"""
        if weight.device.type == "cpu":  # several rows take half as long from this side
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

    It sums in single precision, and half the bytes are read. What further rows cost is what
    speculation pays for its tokens: for a pass of SmolLM2-135M over one row an AMD EPYC with
    AVX-512 takes 13 ms, 16 over 4, 20 over 8 and 26 over 12; one with AVX2 alone 26 to 35 ms, 38
    over 4, 63 over 8 and 82 over 16.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, scale: float) -> None:
        self.nbytes = 2 * weight.numel()
        self._inverse = 1 / scale
        scaled = weight if scale == 1 else weight * scale
        self._packed = torch.ops.quantized.linear_prepack_fp16(
            scaled.detach().float(), None if bias is None else bias.detach().float()
        )
        # What the operator calls once it has looked for arguments that only tracing has: of a
        # product that takes 34 us that is two more.
        self._product = torch.ops.quantized.linear_dynamic_fp16.default.op

    def __call__(self, x: Tensor) -> Tensor:
        return self._product(x if self._inverse == 1 else x * self._inverse, self._packed)

    def add(self, x: Tensor, to: Tensor) -> Tensor:
        return self(x).add_(to)


def _half_scale(weight: Tensor) -> float | None:
    """What to multiply `weight` by so that half precision holds it: a power of two, 1 if it can be.

    None where no entry may be off by 2^-26 of the largest, a quarter of what single precision makes
    of that, and some would be. Weights in bfloat16 pass, which has a wider range and fewer digits.
    """
    pieces = weight.split(_PIECE)  # or what is compared would take more than what is kept
    largest = max(float(piece.abs().amax()) for piece in pieces)
    if not 0 < largest < math.inf:
        return None
    # Soon told, and true of most checkpoints.
    if all(torch.equal(piece.half().float(), piece) for piece in pieces):
        return 1.0
    for scale in (1.0, 2.0 ** (14 - math.frexp(largest)[1])):
        scaled = (piece * scale for piece in pieces)
        lost = max(float((piece.half().float() - piece).abs().amax()) for piece in scaled)
        if lost <= largest * scale * 2**-26:
            return scale
    return None


class Operations(Protocol):
    """What a pass does to rows."""

    def product(self, weights: Linear, x: Tensor, to: Tensor | None = None) -> Tensor:
        """`weights` of `x` [rows, in], added to `to` if there is such: [rows, out]. The numbers of
        a row lie together, in `to` all do."""
        ...

    def normed(self, norm: Norm, x: Tensor) -> Tensor:
        """`norm` of the vectors of `x` [rows, size] or [rows, heads, size]."""
        ...

    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> None:
        """Turn the heads of `x` [rows, heads, dim] to their positions, in place, by cosines and
        sines [rows, 1, dim], of which the first half of the sines is negated."""
        ...

    def gated(self, x: Tensor, activation: str) -> Tensor:
        """What the activation, one of `GATES`, of the first half of `x` [rows, 2 size] lets through
        of the second: [rows, size]."""
        ...


class Plain:
    """By operations of torch, on any device."""

    def product(self, weights: Linear, x: Tensor, to: Tensor | None = None) -> Tensor:
        """See `Operations.product`."""
        return weights(x) if to is None else weights.add(x, to)

    def normed(self, norm: Norm, x: Tensor) -> Tensor:
        """See `Operations.normed`."""
        return norm(x)

    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> None:
        """See `Operations.rotated`."""
        torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin, out=x)

    def gated(self, x: Tensor, activation: str) -> Tensor:
        """See `Operations.gated`."""
        gate, up = x.chunk(2, -1)
        return GATES[activation](gate).mul_(up)


PLAIN = Plain()


@cache
def operations(device: torch.device, dtype: torch.dtype) -> Operations:
    """Of captured passes: those of `fused` where they run and give what torch's give, else torch's.

    They are tried once, which waits for the device.
    """
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16):
        return PLAIN
    try:
        from voiceloop.llm.model.fused import Fused

        own = Fused()
        every = [_apart(own, device, dtype, activation) for activation in GATES]
        apart = float(torch.stack(every).max())  # NaN where there is one
    except Exception as error:  # no Triton, no compiler, no such GPU: torch's own do it then
        logger.info("operations are torch's: %s", " ".join(str(error).split()))
        return PLAIN
    if apart < ROUNDED:
        return own
    logger.warning("operations are torch's: Triton's are wrong here, by %.2g", apart)
    return PLAIN


def _apart(own: Operations, device: torch.device, dtype: torch.dtype, activation: str) -> Tensor:
    """How far its results are from torch's in single precision."""
    generator = torch.Generator(device).manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device, dtype=dtype)

    # As large as matrices are, and as well aligned, and no multiple of what is taken at a time.
    size, columns = 1040, 80
    x, heads, scale, cos, sin = drawn(3, size), drawn(3, 9, 48), drawn(size), *drawn(2, 3, 1, 48)
    matrix, bias, to = drawn(columns, size) / size**0.5, drawn(columns), drawn(3, columns)

    def made(do: Operations, kind: torch.dtype) -> list[Tensor]:
        rows, added, turned = x.to(kind), to.to(kind), heads.to(kind, copy=True)[:, 1:6]
        alone, biased = Whole(matrix.to(kind), None), Whole(matrix.to(kind), bias.to(kind))
        products = [do.product(alone, rows[:few]) for few in (1, 3)]
        products += [do.product(biased, rows[:few], added[:few]) for few in (1, 3)]
        do.rotated(turned, cos.to(kind), sin.to(kind))
        normed = do.normed(Norm(scale.to(kind), 1e-5), rows)
        return [*products, normed, turned, do.gated(rows, activation)]

    pairs = zip(made(own, dtype), made(PLAIN, torch.float32), strict=True)
    return torch.stack([off_by(ours, exact) for ours, exact in pairs]).max()


def off_by(found: Tensor, exact: Tensor) -> Tensor:
    """How far what is found is at most from what is exact, of that or of 1: see `ROUNDED`."""
    return ((found - exact).abs() / (1 + exact.abs())).max()


class Norm:
    """RMSNorm over the last dimension (Zhang and Sennrich 2019)."""

    def __init__(self, weight: Tensor, eps: float, *, raised: bool = False) -> None:
        """`raised` multiplies by one more than `weight`, which 16 bits would not hold."""
        weight = weight.detach()
        self._exact = raised and weight.dtype.itemsize < 4
        self.weight = weight.float() + 1 if self._exact else weight + 1 if raised else weight
        self.eps = eps
        self._shape = weight.shape
        self._fused = weight.device.type != "cpu" or weight.dtype.itemsize < 4
        # On the CPU torch has no single call for it. Of x w / sqrt(mean(x²) + eps), multiplied by
        # sqrt(n) above and below, these are the parts that do not change.
        size = weight.numel()
        self._scaled = self.weight * math.sqrt(size)
        self._floor = torch.tensor(math.sqrt(size * eps), dtype=weight.dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """Shape of `x`, [..., n]."""
        if self._exact:
            return F.rms_norm(x.float(), self._shape, self.weight, self.eps).type_as(x)
        if self._fused:
            return F.rms_norm(x, self._shape, self.weight, self.eps)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x.div(length.hypot_(self._floor)).mul_(self._scaled)
