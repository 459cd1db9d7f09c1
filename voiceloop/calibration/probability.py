"""Probabilities that a turn ends after some words: what is asked for, and how two are compared."""

from __future__ import annotations

import math

from voiceloop.types import Calibration

FINAL = ".?!…,;:"
"""Punctuation at the end of a transcript. Whisper puts some after any pause, so it says nothing."""

CERTAIN = 1e-6
"""No probability is nearer to 0 or 1."""


def bare(text: str) -> str:
    """`text` without the punctuation at its end."""
    return text.rstrip(FINAL + " ")


def comparable(probability: float, calibration: Calibration, exchanges: int) -> float:
    """What P(end of turn) after so many `exchanges` would be in the first turn."""
    if not exchanges or not 0 < probability < 1:
        return probability
    first = odds(probability) * math.exp(-calibration.shift)
    return first / (1 + first)


def odds(probability: float) -> float:
    """How much more likely than not; what is certain has odds too, of a million."""
    sure = min(max(probability, CERTAIN), 1 - CERTAIN)
    return sure / (1 - sure)
