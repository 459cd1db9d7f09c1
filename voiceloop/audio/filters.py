"""Filters between a microphone and what listens to it: each changes one frame after the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

import numpy as np

from voiceloop.audio.devices import OFF, Microphone
from voiceloop.audio.frames import HighPass, silence
from voiceloop.types import AudioFrame

SILENT_S = 4.0
"""If the microphone gives only silence in its first `SILENT_S` seconds, `DcBlocker` reports it."""


class Filter(Protocol):
    """Changes the sound of a microphone."""

    def process(self, frame: AudioFrame) -> AudioFrame:
        """Return what is heard instead of `frame`, with as many samples."""
        ...


class FilteredMicrophone:
    """A microphone whose frames pass filters in order; implements `devices.Microphone`."""

    def __init__(self, source: Microphone, *filters: Filter) -> None:
        """Filter the frames of `source`, after the filters that it may have already."""
        before = (source.source, source.filters) if isinstance(source, FilteredMicrophone) else None
        self.source, known = before or (source, ())
        self.filters = (*known, *filters)

    @property
    def finished(self) -> bool:
        """Whether the source has finished."""
        return self.source.finished

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield the filtered frames of the source."""
        async with aclosing(self.source.frames()) as frames:
            async for frame in frames:
                for one in self.filters:
                    frame = one.process(frame)
                yield frame

    def hold(self) -> None:
        """Hold the source."""
        self.source.hold()

    def release(self) -> None:
        """Release the source."""
        self.source.release()


class DcBlocker:
    """Removes the constant offset of a microphone."""

    def __init__(self, silent: Callable[[], None] = lambda: None) -> None:
        """Call `silent` if the first `SILENT_S` seconds are nothing but silence."""
        self._silent = silent
        self._high_pass = HighPass()
        self._awaited = True
        """Whether no sound has come yet, and `silent` has not been called."""

    def process(self, frame: AudioFrame) -> AudioFrame:
        """Return `frame` without its offset."""
        pcm = self._high_pass.feed(frame.pcm)
        self._awaited = self._awaited and float(np.abs(pcm).max()) <= OFF
        if self._awaited and frame.end >= SILENT_S * frame.rate:
            self._silent()
            self._awaited = False
        return replace(frame, pcm=pcm)


class Mute:
    """Passes frames on, or silence while it is muted, and meters their level."""

    def __init__(self, *, muted: bool = False) -> None:
        self.muted = muted
        self._loudest = 0.0

    def level(self) -> float:
        """Return the largest amplitude that was passed on since the last call; 0 for silence."""
        level, self._loudest = self._loudest, 0.0
        return level

    def process(self, frame: AudioFrame) -> AudioFrame:
        """Return `frame`, or silence while `muted` is set.

        If the user is speaking, muting ends the turn, because silent frames count as a silence of
        the user.
        """
        if self.muted:
            return replace(frame, pcm=silence(len(frame.pcm)))
        self._loudest = max(self._loudest, float(np.abs(frame.pcm).max(initial=0)))
        return frame


class Tap:
    """Passes frames on as they are, and calls a function with each before."""

    def __init__(self, take: Callable[[AudioFrame], None]) -> None:
        self._take = take

    def process(self, frame: AudioFrame) -> AudioFrame:
        """Call the function with `frame`, and return `frame`."""
        self._take(frame)
        return frame
