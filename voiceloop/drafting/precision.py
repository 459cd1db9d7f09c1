"""Whether a training is quicker in 16 bits."""

from __future__ import annotations

from functools import cache

import torch
from torch.utils.benchmark import Timer

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
    """Seconds of a product of a size that layers have."""
    made = {"x": torch.ones(128, 768, dtype=dtype), "weights": torch.ones(768, 768, dtype=dtype)}
    timer = Timer("x @ weights", globals=made, num_threads=torch.get_num_threads())
    return float(timer.blocked_autorange(min_run_time=0.05).median)
