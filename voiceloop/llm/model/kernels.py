"""Chooses how a decoder's pass is computed: by torch, or by one Triton kernel for each operation.

Both give the same results up to the rounding of their type.
"""

from __future__ import annotations

import logging
from functools import cache

import torch
from torch import Tensor

from voiceloop.llm.model.operations import ACTIVATIONS, PLAIN, Norm, Operations, Whole

logger = logging.getLogger(__name__)

ROUNDED = 0.02
"""Maximum `relative_error` of results in 16 bits. A larger error does not come from rounding."""


@cache
def operations(device: torch.device, dtype: torch.dtype) -> Operations:
    """Choose the operations of captured passes. Return those of `fused` if they run on `device` and
    agree with torch's operations, else torch's.

    The first call for each device and type tries the operations out, and waits for the device.
    """
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16):
        return PLAIN
    try:
        from voiceloop.llm.model.fused import Fused

        own = Fused()
        every = [_error(own, device, dtype, activation) for activation in ACTIVATIONS]
        worst = float(torch.stack(every).max())  # NaN if any of them is NaN
    except Exception as error:  # Triton, a compiler or a fitting GPU may be missing
        logger.info("operations are torch's: %s", " ".join(str(error).split()))
        return PLAIN
    if worst < ROUNDED:
        return own
    logger.warning("operations are torch's: Triton's are wrong here, by %.2g", worst)
    return PLAIN


def _error(own: Operations, device: torch.device, dtype: torch.dtype, activation: str) -> Tensor:
    """Return the largest `relative_error` of `own` against torch in single precision."""
    generator = torch.Generator(device).manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device, dtype=dtype)

    # The sizes are aligned like real matrices, but are not multiples of a kernel's blocks.
    size, columns = 1040, 80
    x, heads, scale, cos, sin = drawn(3, size), drawn(3, 9, 48), drawn(size), *drawn(2, 3, 1, 48)
    matrix, bias, to = drawn(columns, size) / size**0.5, drawn(columns), drawn(3, columns)

    def made(do: Operations, kind: torch.dtype) -> list[Tensor]:
        rows, added, turned = x.to(kind), to.to(kind), heads.to(kind, copy=True)[:, 1:6]
        alone, biased = Whole(matrix.to(kind), None), Whole(matrix.to(kind), bias.to(kind))
        products = [do.product(alone, rows[:few]) for few in (1, 3)]
        products += [do.product(biased, rows[:few], added[:few]) for few in (1, 3)]
        do.apply_rotary(turned, cos.to(kind), sin.to(kind))
        normed = do.rms_norm(Norm(scale.to(kind), 1e-5), rows)
        return [*products, normed, turned, do.glu(rows, activation)]

    pairs = zip(made(own, dtype), made(PLAIN, torch.float32), strict=True)
    return torch.stack([relative_error(ours, exact) for ours, exact in pairs]).max()


def relative_error(found: Tensor, exact: Tensor) -> Tensor:
    """Return max |found - exact| / (1 + |exact|)."""
    return ((found - exact).abs() / (1 + exact.abs())).max()
