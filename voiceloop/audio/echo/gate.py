"""A gate that closes while the output of the echo canceller is only a faint rest of the echo."""

from __future__ import annotations

from collections import deque

from voiceloop.audio.frames import FRAME_MS, dbfs
from voiceloop.types import Pcm

FAINT_DB = 20.0
"""The output of the canceller counts as a rest of the echo if it is at least this many dB softer
than the input. A user who speaks meanwhile is louder, unless the loudspeaker drowns the voice."""
MEMORY_MS = 200
"""The gate compares the loudest input and the loudest output of this many milliseconds, so that it
stays open in the middle of a word."""


class ResidualGate:
    """Compares blocks before and after an echo canceller."""

    def __init__(self) -> None:
        size = MEMORY_MS // FRAME_MS
        self._recorded, self._left = deque[float](maxlen=size), deque[float](maxlen=size)

    def opens(self, recorded: Pcm, left: Pcm) -> bool:
        """Add the next block: `recorded` is the input of the canceller, and `left` its output.
        Return whether the block may be heard."""
        self._recorded.append(dbfs(recorded))
        self._left.append(dbfs(left))
        return max(self._left) > max(self._recorded) - FAINT_DB
