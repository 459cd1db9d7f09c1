"""A room with a microphone, in which a clip is heard, and a loudspeaker.

The microphone runs at real-time pace like a live one, and knows afterwards when each of its samples
was recorded, so that what happened can be compared with what was said.
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
    """A microphone (`voiceloop.audio.devices`) that hears a clip.

    It never holds its clock: what is said while a reply plays is heard by whoever listens.
    """

    interrupted: int | None = None
    """Sample of its stream at which another sound began; only the lab's rooms make one."""

    def __init__(self, clip: Clip) -> None:
        self.clip = clip
        self.position = 0
        """Samples that have been recorded."""
        self._begun = 0.0

    @property
    def finished(self) -> bool:
        """True once the last sound has been heard."""
        return self.position >= len(self.clip.pcm)

    def see(self, event: Event) -> None:
        """Learn what the session shows."""

    def heard(self, start: int, count: int) -> Pcm:
        """Return `count` samples from `start` on; asked for once they have been recorded."""
        return self.clip.read(start, count)

    def recorded(self, sample: int) -> float:
        """Return when `sample` was recorded, in seconds of the loop's clock."""
        return self._begun + sample / SPEECH_RATE

    def hold(self) -> None:
        """Go on: a room's clock cannot be held."""

    def release(self) -> None:
        """Go on: nothing was held."""

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
    """Plays the first moments of a reply as time passes, and the rest at once.

    For measuring how soon replies begin without hearing each of them to its end.
    """

    def __init__(self, rate: int, seconds: float) -> None:
        """`seconds` of each stretch of sound take their time."""
        super().__init__(rate)
        self._brief = round(seconds * rate)

    def due(self) -> float:
        """Return when a sample written now would be played, in seconds of the loop's clock."""
        now = anyio.current_time()
        heard = min(self._count, self._brief)
        return max(now, self._since + heard / self.rate)
