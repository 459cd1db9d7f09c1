"""Decide whether training is faster in 16 bits."""

from __future__ import annotations

import timeit
from functools import cache

import torch
import torch.nn.functional as F

GAIN = 0.7
"""16 bits are used if they take less than this share of the time of 32 bits."""


@cache
def halves(device: torch.device) -> bool:
    """Return whether bfloat16 is much faster than float32 on `device`. On a CPU this is measured,
    because some processors emulate products of bfloat16; on other devices it is assumed."""
    if device.type != "cpu":
        return True
    return _attends() and _took(torch.bfloat16) < GAIN * _took(torch.float32)


def _attends() -> bool:
    """Return whether torch can compute attention in bfloat16 on this CPU. Torch 2.13 fails if
    ATEN_CPU_CAPABILITY names an older instruction set than the processor's."""
    rows = torch.ones(1, 1, 128, 64, dtype=torch.bfloat16)
    try:
        F.scaled_dot_product_attention(rows, rows, rows, is_causal=True)
    except RuntimeError:
        return False
    return True


def _took(dtype: torch.dtype) -> float:
    """Time a matrix product of a layer's size 20 times. Return the shortest time, in seconds."""
    x, weights = torch.ones(128, 768, dtype=dtype), torch.ones(768, 768, dtype=dtype)
    return min(timeit.repeat(lambda: x @ weights, number=1, repeat=20))
