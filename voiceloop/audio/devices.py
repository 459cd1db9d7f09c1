"""Where audio enters and leaves: microphones and speakers.

A `Speaker` tells the moment at which each sample sounds, and gives back what it has not yet played.
Waiting goes through anyio alone, so all of it runs on a virtual clock to the microsecond. This
module knows nothing of replies.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

import anyio
import anyio.lowlevel
import numpy as np

from voiceloop.audio.files import AudioFile, AudioInfo, WavWriter
from voiceloop.audio.frames import Framer, HighPass, fade_out, silence
from voiceloop.types import AudioFrame, Pcm

Pace = Literal["realtime", "max"]
"""As time passes, or as fast as the machine can."""

AHEAD_S = 0.06
"""Audio that a speaker is handed ahead of time; `cut` takes it back, so it delays nothing."""
SILENT_S = 4.0
"""So much of nothing but silence, and somebody would like to know."""
OFF = 4 / 32768
"""Loudest sample of a microphone that is off."""


class Speaker(Protocol):
    """Plays one always-open stream; silent where nothing is written."""

    rate: int
    """Hertz."""

    def due(self) -> float:
        """When a sample written now would be played, in seconds of the loop's clock."""
        ...

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that will begin.

        Never blocks.
        """
        ...

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples at most, and forget what comes after them.

        Returns the number of samples that were written and will now never be played.
        """
        ...

    async def room(self) -> None:
        """Wait until less than `AHEAD_S` is written but not yet played."""
        ...


class Microphone(Protocol):
    """An endless stream of audio at 16 kHz."""

    @property
    def finished(self) -> bool:
        """True once nothing but silence can follow; never for a live microphone."""
        ...

    def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Frames of 10 ms, each as soon as its last sample has been recorded."""
        ...

    def hold(self) -> None:
        """Hear nothing until `release`: a file's clock stops, a live microphone discards."""
        ...

    def release(self) -> None:
        """Go on hearing."""
        ...


class Centred:
    """Another microphone, without the constant offset that it may have."""

    def __init__(self, microphone: Microphone, silent: Callable[[], None] = lambda: None) -> None:
        """`silent` is called where it has given nothing but silence since it was first heard."""
        self._microphone = microphone
        self._silent = silent
        self._high_pass = HighPass()

    @property
    def finished(self) -> bool:
        """The microphone has finished."""
        return self._microphone.finished

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """The frames of the microphone, without its offset."""
        awaited = True  # nothing has been heard yet, nor has that been told
        async with aclosing(self._microphone.frames()) as frames:
            async for frame in frames:
                pcm = self._high_pass.feed(frame.pcm)
                awaited = awaited and float(np.abs(pcm).max()) <= OFF
                if awaited and frame.end >= SILENT_S * frame.rate:
                    self._silent()
                    awaited = False
                yield replace(frame, pcm=pcm)

    def hold(self) -> None:
        """Hold the microphone."""
        self._microphone.hold()

    def release(self) -> None:
        """Release the microphone."""
        self._microphone.release()


class PacedSpeaker:
    """Keeps time by the loop's clock, for whatever sounds elsewhere, or nowhere.

    Sound follows upon sound at the pace of time or, with pace `max`, everything sounds at once.
    """

    ahead_s = AHEAD_S
    """What it is handed ahead of time."""

    def __init__(self, rate: int, *, pace: Pace = "realtime") -> None:
        self.rate = rate
        self.pace = pace
        # Counted in samples from the beginning of an unbroken stretch, so no rounding adds up.
        self._since = 0.0
        self._count = 0
        self._lag = 0.0
        """Seconds by which everything sounds later than that."""

    @property
    def _end(self) -> float:
        """When the stretch is over."""
        return self._since + self._count / self.rate

    def due(self) -> float:
        """When a sample written now would be played, in seconds of the loop's clock."""
        now = anyio.current_time()
        return (now if self.pace == "max" else max(now, self._end)) + self._lag

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that begins."""
        due = self.due()  # one look at the clock, or the stretch would seem to begin anew
        if due > self._end + self._lag:
            self._since, self._count = due - self._lag, 0
        self._count += len(pcm)
        return due

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples, and forget what comes after them."""
        dropped = min(self._count, max(0, unplayed(self.due(), self.rate) - fade))
        self._count -= dropped
        return dropped

    async def room(self) -> None:
        """Wait until less than `ahead_s` is written but not yet due."""
        await anyio.sleep_until(self.due() - self._lag - self.ahead_s)


class NullSpeaker(PacedSpeaker):
    """Plays into nothing."""


class WavSpeaker(PacedSpeaker):
    """Plays into a wav file.

    At real-time pace the file is a recording of the loudspeaker from the first sound on, with
    silence wherever nothing sounded; at pace `max` it is what was played, end to end. Used as a
    context manager, it puts the file in place on success only; AudioError where it cannot.
    """

    def __init__(self, path: str | Path, rate: int, *, pace: Pace = "realtime") -> None:
        super().__init__(rate, pace=pace)
        self._writer = WavWriter(path, rate)
        self._begun: float | None = None
        self._held = silence(0)
        """What may not have been played yet, and so may still be cut."""
        self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._settle(0)
        self._writer.__exit__(kind, error, trace)

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that begins."""
        begin = super().write(pcm)
        if self._begun is None:
            self._begun = self._since
        if self._count == len(pcm) and self.pace == "realtime":
            self._settle(0)
            self._silence_until(round((self._since - self._begun) * self.rate))
        self._held = np.concatenate((self._held, pcm))
        self._settle(unplayed(self.due(), self.rate))
        return begin

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples, and forget what comes after them."""
        dropped = super().cut(fade)
        kept = self._held[: len(self._held) - dropped]
        self._held = fade_out(kept, min(unplayed(self.due(), self.rate), len(kept)))
        return dropped

    def _settle(self, keep: int) -> None:
        """Write to the file what has been played: all but the last `keep` samples."""
        played = len(self._held) - keep
        if played > 0:
            self._writer.write(self._held[:played])
            self._written += played
            self._held = self._held[played:]

    def _silence_until(self, index: int) -> None:
        while (missing := index - self._written) > 0:
            gap = min(missing, self.rate)
            self._writer.write(silence(gap))
            self._written += gap


class RecordedSpeaker:
    """A speaker that sounds, and a file that plays the same beside it."""

    def __init__(self, speaker: Speaker, file: WavSpeaker) -> None:
        """Both have the same rate; what sounds when is the speaker's word."""
        self.rate = speaker.rate
        self._speaker, self._file = speaker, file

    def due(self) -> float:
        """See `Speaker`."""
        return self._speaker.due()

    def write(self, pcm: Pcm) -> float:
        """See `Speaker`."""
        self._file.write(pcm)
        return self._speaker.write(pcm)

    def cut(self, fade: int) -> int:
        """See `Speaker`."""
        self._file.cut(fade)
        return self._speaker.cut(fade)

    async def room(self) -> None:
        """See `Speaker`."""
        await self._speaker.room()


def unplayed(until: float, rate: int) -> int:
    """Whole samples between now and `until`; one that has begun to sound counts as played."""
    return max(0, int((until - anyio.current_time()) * rate + 1e-6))


class FileMicrophone:
    """An audio file heard through a microphone, followed by silence for as long as anyone listens.

    At real-time pace a frame comes when its last sample would have been recorded, and lateness
    does not add up. While held the file's clock stops and no frame comes at all. Used as a context
    manager; AudioError for a file that cannot be used, while it plays too if it is damaged inside.
    """

    def __init__(self, path: str | Path, *, pace: Pace = "realtime") -> None:
        self.pace = pace
        self._file = AudioFile(path)
        self._finished = False
        self._held_at: float | None = None
        self._released = anyio.Event()
        self._begun = 0.0
        """When sample 0 was recorded, were the time that the file was held left out."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.__exit__(*error)

    @property
    def info(self) -> AudioInfo:
        """What the file says about itself; `warning` is complete once `finished`."""
        return self._file.info

    @property
    def finished(self) -> bool:
        """True from the frame on that holds the file's last sample; then silence follows."""
        return self._finished

    def hold(self) -> None:
        """Stop the file's clock."""
        if self._held_at is None:
            self._held_at = anyio.current_time()

    def release(self) -> None:
        """Let the file's clock go on."""
        if self._held_at is not None:
            self._begun += anyio.current_time() - self._held_at
            self._held_at = None
            self._released.set()
            self._released = anyio.Event()

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Frames of 10 ms at 16 kHz, once."""
        self._begun = anyio.current_time()
        if self._held_at is not None:
            self._held_at = self._begun
        framer = Framer()
        for pcm in self._sound(framer.size):
            for frame in framer.feed(pcm):
                await self._recorded(frame)
                yield frame

    def _sound(self, size: int) -> Iterator[Pcm]:
        yield from self._file.blocks()
        self._finished = True
        while True:
            yield silence(size)

    async def _recorded(self, frame: AudioFrame) -> None:
        """Wait for the moment of `frame`."""
        await anyio.lowlevel.checkpoint()
        while True:
            due = self._begun + frame.end / frame.rate
            if self._held_at is not None:
                await self._released.wait()
            elif self.pace == "max" or due <= anyio.current_time():
                return
            else:
                await anyio.sleep_until(due)
