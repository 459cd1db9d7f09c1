"""Whether a training is quicker in 16 bits."""

from __future__ import annotations

import time
from functools import cache

import torch

GAIN = 0.7
"""What 16 bits may take of the time of 32 and be worth what they lose."""
_ROWS, _WIDTH, _TIMES = 128, 768, 20


@cache
def halves(device: torch.device) -> bool:
    """Whether products in bfloat16 are much quicker than in float32 there: some processors have
    none and make them of others. Products are timed."""
    if device.type != "cpu":
        return True
    return _took(torch.bfloat16) < GAIN * _took(torch.float32)


def _took(dtype: torch.dtype) -> float:
    """Seconds of the quickest of some products."""
    x, weights = torch.ones(_ROWS, _WIDTH, dtype=dtype), torch.ones(_WIDTH, _WIDTH, dtype=dtype)
    seconds = list[float]()
    for _ in range(_TIMES):
        begun = time.perf_counter()
        x @ weights
        seconds.append(time.perf_counter() - begun)
    return min(seconds)
