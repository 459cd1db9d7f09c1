"""Sounds to test with, and ways to cut them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from voiceloop.types import Pcm

sizes = st.lists(st.integers(1, 3000), min_size=1, max_size=12)
"""Lengths of chunks, for `chunks`."""


def tone(seconds: float, rate: int = 16_000) -> Pcm:
    """A sine of 440 Hz and amplitude 0.4."""
    at = np.arange(int(seconds * rate)) / rate
    return (0.4 * np.sin(2 * np.pi * 440.0 * at)).astype(np.float32)


def chunks(pcm: Pcm, lengths: Sequence[int]) -> list[Pcm]:
    """`pcm` cut into pieces of `lengths`, over and over."""
    cuts = np.cumsum(np.resize(lengths, len(pcm)))
    return list(np.split(pcm, cuts[cuts < len(pcm)]))
