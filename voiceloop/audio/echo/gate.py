"""A gate that closes while the output of the echo canceller is only a faint rest of the echo."""

from __future__ import annotations

from collections import deque

from voiceloop.audio.frames import FRAME_MS, dbfs
from voiceloop.types import Pcm

FAINT_DB = 20.0
"""Difference in dB between the canceller's input and output from which the output counts as a rest
of the echo. The voice of a user who speaks meanwhile is louder than that, unless the loudspeaker
drowns it."""
MEMORY_MS = 200
"""Time in milliseconds over which the loudest blocks are compared, so that the gate stays open in
the middle of a word."""


class ResidualGate:
    """Compares blocks before and after an echo canceller."""

    def __init__(self) -> None:
        size = MEMORY_MS // FRAME_MS
        self._recorded, self._left = deque[float](maxlen=size), deque[float](maxlen=size)

    def opens(self, recorded: Pcm, left: Pcm) -> bool:
        """Add the next block, `recorded` before and `left` after the canceller. Return whether it
        may be heard."""
        self._recorded.append(dbfs(recorded))
        self._left.append(dbfs(left))
        return max(self._left) > max(self._recorded) - FAINT_DB
