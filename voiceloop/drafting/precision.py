"""Whether a training is quicker in 16 bits."""

from __future__ import annotations

import timeit
from functools import cache

import torch

GAIN = 0.7
"""What 16 bits may take of the time of 32 and be worth what they lose."""


@cache
def halves(device: torch.device) -> bool:
    """Whether products in bfloat16 are much quicker than in float32 there: some processors have
    none and make them of others. Products are timed."""
    if device.type != "cpu":
        return True
    return _took(torch.bfloat16) < GAIN * _took(torch.float32)


def _took(dtype: torch.dtype) -> float:
    """Seconds of a product of a size that layers have, when nothing came between."""
    x, weights = torch.ones(128, 768, dtype=dtype), torch.ones(768, 768, dtype=dtype)
    return min(timeit.repeat(lambda: x @ weights, number=1, repeat=20))
