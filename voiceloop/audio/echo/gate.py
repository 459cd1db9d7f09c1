"""Closes while what is left of an echo is far too faint to be the user."""

from __future__ import annotations

from collections import deque

from voiceloop.audio.frames import FRAME_MS, dbfs
from voiceloop.types import Pcm

FAINT_DB = 20.0
"""What is left counts as echo if it is that much fainter than what was recorded. A user who speaks
at the same time is louder than that, or the loudspeaker would drown them."""
MEMORY_MS = 200
"""Time in milliseconds over which the loudest blocks are compared, so that the gate stays open in
the middle of a word."""


class ResidualGate:
    """Compares blocks before and after an echo canceller."""

    def __init__(self) -> None:
        size = MEMORY_MS // FRAME_MS
        self._recorded, self._left = deque[float](maxlen=size), deque[float](maxlen=size)

    def opens(self, recorded: Pcm, left: Pcm) -> bool:
        """Add a block of both. Return whether it may be heard."""
        self._recorded.append(dbfs(recorded))
        self._left.append(dbfs(left))
        return max(self._left) > max(self._recorded) - FAINT_DB
