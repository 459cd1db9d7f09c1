"""Whether a training is quicker in 16 bits."""

from __future__ import annotations

import timeit
from functools import cache

import torch
import torch.nn.functional as F

GAIN = 0.7
"""What 16 bits may take of the time of 32 and be worth what they lose."""


@cache
def halves(device: torch.device) -> bool:
    """Whether bfloat16 is much quicker than float32 there: some processors have no products of it
    and make them of others. Products are timed."""
    if device.type != "cpu":
        return True
    return _attends() and _took(torch.bfloat16) < GAIN * _took(torch.float32)


def _attends() -> bool:
    """Whether torch has attention in bfloat16: where ATEN_CPU_CAPABILITY names less than the
    processor has, torch 2.13 wants what it has not got then."""
    rows = torch.ones(1, 1, 128, 64, dtype=torch.bfloat16)
    try:
        F.scaled_dot_product_attention(rows, rows, rows, is_causal=True)
    except RuntimeError:
        return False
    return True


def _took(dtype: torch.dtype) -> float:
    """Seconds of a product of a size that layers have, when nothing came between."""
    x, weights = torch.ones(128, 768, dtype=dtype), torch.ones(768, 768, dtype=dtype)
    return min(timeit.repeat(lambda: x @ weights, number=1, repeat=20))
