"""A microphone that can be switched off, and whose level can be read."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import numpy as np

from voiceloop.audio.devices import Microphone
from voiceloop.audio.frames import silence
from voiceloop.types import AudioFrame


class SwitchedMicrophone:
    """A microphone that passes on the frames of another one, or silence while it is muted."""

    def __init__(self, microphone: Microphone, *, muted: bool = False) -> None:
        self.muted = muted
        self._microphone = microphone
        self._loudest = 0.0

    @property
    def finished(self) -> bool:
        """Whether the wrapped microphone has finished."""
        return self._microphone.finished

    def level(self) -> float:
        """Return the largest amplitude that was passed on since the last call; 0 for silence."""
        level, self._loudest = self._loudest, 0.0
        return level

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield the frames of the wrapped microphone, or silent frames while `muted` is set.

        If the user is speaking, muting ends the turn, because silent frames count as a silence of
        the user.
        """
        async with aclosing(self._microphone.frames()) as frames:
            async for frame in frames:
                if self.muted:
                    yield replace(frame, pcm=silence(len(frame.pcm)))
                else:
                    self._loudest = max(self._loudest, float(np.abs(frame.pcm).max(initial=0)))
                    yield frame

    def hold(self) -> None:
        """Hold the wrapped microphone."""
        self._microphone.hold()

    def release(self) -> None:
        """Release the wrapped microphone."""
        self._microphone.release()
