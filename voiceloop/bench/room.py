"""A room with a microphone, in which a clip is heard and sounds are made, and a loudspeaker.

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
from voiceloop.types import AudioFrame, Pcm


class Room:
    """A microphone (`voiceloop.audio.devices`) that hears a clip, and whatever sounds meanwhile.

    It never holds its clock: what is said while a reply plays is heard by whoever listens.
    """

    def __init__(self, clip: Clip, *, more: bool = False) -> None:
        """`more` says that a sound is to come, which `play` makes."""
        self._clip = clip
        self._size = samples(FRAME_MS)
        self._more = more
        self._sounds: list[tuple[int, Pcm]] = []
        self._last = len(clip.pcm)
        self._position = 0
        self._begun = 0.0

    @property
    def finished(self) -> bool:
        """True once the last sound has been heard."""
        return not self._more and self._position >= self._last

    def play(self, pcm: Pcm, delay_s: float = 0.0) -> int:
        """Make a sound in `delay_s` seconds; returns its first sample's index in the stream."""
        start = self._position + max(0, round(delay_s * SPEECH_RATE))
        self._sounds.append((start, pcm))
        self._last = max(self._last, start + len(pcm))
        self._more = False
        return start

    def expect_nothing(self) -> None:
        """No sound is to come after all."""
        self._more = False

    def recorded(self, sample: int) -> float:
        """When `sample` was recorded, in seconds of the loop's clock."""
        return self._begun + sample / SPEECH_RATE

    def hold(self) -> None:
        """See `Microphone.hold`; a room goes on."""

    def release(self) -> None:
        """See `Microphone.release`."""

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Frames of 10 ms, each as soon as its last sample has been recorded."""
        await anyio.lowlevel.checkpoint()
        self._begun = anyio.current_time()
        while True:
            start, end = self._position, self._position + self._size
            await anyio.sleep_until(self._begun + end / SPEECH_RATE)
            # Only now: a sound may have been made while the frame was being recorded.
            pcm = self._clip.read(start, self._size)
            for at, sound in self._sounds:
                first, last = max(at, start), min(at + len(sound), end)
                if first < last:
                    pcm[first - start : last - start] += sound[first - at : last - at]
            self._position = end
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
        """When a sample written now would be played, in seconds of the loop's clock."""
        now = anyio.current_time()
        heard = min(self._count, self._brief)
        return max(now, self._since + heard / self.rate)
