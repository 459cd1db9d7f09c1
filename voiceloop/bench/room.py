"""A simulated room: a microphone that hears a clip, and a loudspeaker.

The microphone runs at real-time pace like a live one. It knows when each of its samples was
recorded, so that events can be compared with the speech in the clip.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import anyio.lowlevel

from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import FRAME_MS, SPEECH_RATE, samples
from voiceloop.bench.clips import Clip
from voiceloop.types import AudioFrame, Event, Pcm


class Room:
    """A microphone (`voiceloop.audio.devices.Microphone`) that hears a clip.

    Its clock cannot be held, so it also hears while a reply plays.
    """

    interrupted: int | None = None
    """Index of the stream's sample at which an interrupting sound began; None without such a sound.
    Only rooms of the lab have one."""

    def __init__(self, clip: Clip) -> None:
        self.clip = clip
        self.position = 0
        """Number of samples that have been recorded."""
        self._begun = 0.0

    @property
    def finished(self) -> bool:
        """True once the whole clip has been heard."""
        return self.position >= len(self.clip.pcm)

    def see(self, event: Event) -> None:
        """Receive an event that the session shows. This room ignores it."""

    def heard(self, start: int, count: int) -> Pcm:
        """Return `count` samples from `start` on. They must have been recorded by now."""
        return self.clip.read(start, count)

    def recorded(self, sample: int) -> float:
        """Return when `sample` was recorded, in seconds of the event loop's clock."""
        return self._begun + sample / SPEECH_RATE

    def hold(self) -> None:
        """Do nothing: the clock of a room cannot be held."""

    def release(self) -> None:
        """Do nothing: the clock was not held."""

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 10 ms, each as soon as its last sample has been recorded."""
        size = samples(FRAME_MS)
        await anyio.lowlevel.checkpoint()
        self._begun = anyio.current_time()
        while True:
            start = self.position
            await anyio.sleep_until(self._begun + (start + size) / SPEECH_RATE)
            pcm = self.heard(start, size)
            self.position = start + size
            yield AudioFrame(pcm, SPEECH_RATE, start)


class BriefSpeaker(NullSpeaker):
    """A speaker that plays the beginning of a reply in real time, and the rest at once.

    It saves time where only the beginning of each reply is measured.
    """

    def __init__(self, rate: int, seconds: float) -> None:
        """Play the first `seconds` of each stretch of sound in real time."""
        super().__init__(rate)
        self._brief = round(seconds * rate)

    def due(self) -> float:
        """Return when a sample written now would play, in seconds of the event loop's clock."""
        now = anyio.current_time()
        heard = min(self._count, self._brief)
        return max(now, self._since + heard / self.rate)
