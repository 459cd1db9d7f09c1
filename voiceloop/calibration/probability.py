"""End probabilities, and their conversion to a common scale."""

from __future__ import annotations

import math

from voiceloop.types import Calibration

CERTAIN = 1e-6
"""Minimum distance of a probability from 0 and from 1."""


def comparable(probability: float, calibration: Calibration, exchanges: int) -> float:
    """Convert an end probability to the scale of a first turn. If there were exchanges before the
    turn, so that `exchanges` is not 0, the calibration's shift is subtracted from the log-odds."""
    if not exchanges or not 0 < probability < 1:
        return probability
    first = odds(probability) * math.exp(-calibration.shift)
    return first / (1 + first)


def odds(probability: float) -> float:
    """Return p / (1 - p), where p is `probability`, limited to `CERTAIN` ≤ p ≤ 1 - `CERTAIN`."""
    sure = min(max(probability, CERTAIN), 1 - CERTAIN)
    return sure / (1 - sure)
