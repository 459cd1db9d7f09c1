"""A package of somebody else's: a recogniser that hears the word `la` in each stretch of sound.

`tests/asr/test_streaming.py` installs it. Only what has followed a silence can be told apart, so
the last word of a partial result may still become longer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voiceloop.asr.streaming import Partial, StreamingAsr
from voiceloop.settings.config import AsrConfig
from voiceloop.types import Pcm, Word

RATE = 16_000
STEP = RATE // 20
"""Samples over which the loudest counts."""
LOUD = 0.05


class Bursts(StreamingAsr):
    """The engine."""

    name = "bursts"

    def open(self, language: str | None) -> BurstStream:
        """Begin to hear a turn."""
        return BurstStream()


class BurstStream:
    """One turn of the user."""

    def __init__(self) -> None:
        self._pcm = np.zeros(0, np.float32)

    def feed(self, pcm: Pcm) -> None:
        """Keep the next samples."""
        self._pcm = np.concatenate((self._pcm, pcm))

    def partial(self) -> Partial:
        """Return all words, of which the last is not settled."""
        words = self.final()
        return Partial(words[:-1], words[-1:])

    def final(self) -> Sequence[Word]:
        """Return a word for each stretch of sound."""
        steps = self._pcm[: len(self._pcm) // STEP * STEP].reshape(-1, STEP)
        loud = np.concatenate(([False], np.abs(steps).max(axis=1, initial=0.0) > LOUD, [False]))
        edges = np.flatnonzero(np.diff(loud)) * STEP / RATE
        return [Word("la", *map(float, edge)) for edge in edges.reshape(-1, 2)]


def bursts(config: AsrConfig) -> StreamingAsr:
    """Entry point of `voiceloop.asr`."""
    return Bursts()
