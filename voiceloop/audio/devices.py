"""Microphones and speakers: where audio enters and leaves, and how it is recorded on the way.
Filters change the frames of a microphone before anything listens to them.

A `Speaker` tells when each sample sounds, and takes back samples that it has not yet played. All
waiting goes through anyio, so everything here can also run on a virtual clock, with an accuracy of
a microsecond. This module knows nothing of replies.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
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
"""Speed of audio: real time, or the highest speed of the machine."""

AHEAD_S = 0.06
"""Seconds of audio that are written to a speaker ahead of the sound. `cut` discards them, so an
interrupted reply stops at once."""
OFF = 4 / 32768
"""Maximum amplitude of a microphone that is off."""
SILENT_S = 4.0
"""If the microphone gives only silence in its first `SILENT_S` seconds, `DcBlocker` reports it."""


class Speaker(Protocol):
    """Plays one stream that is always open. It is silent while nothing is written."""

    rate: int
    """Sample rate in hertz."""

    def due(self) -> float:
        """Return when a sample written now would be played, in seconds of the loop's clock."""
        ...

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that will begin.

        Never blocks.
        """
        ...

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples at most, and discard what comes after them.

        Returns the number of samples that were written and will now never be played.
        """
        ...

    async def room(self) -> None:
        """Wait until less than `AHEAD_S` seconds of audio are written but not yet played."""
        ...


class Microphone(Protocol):
    """An endless stream of audio at 16 kHz."""

    @property
    def finished(self) -> bool:
        """Whether only silence can follow; never true for a live microphone."""
        ...

    def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 10 ms, each as soon as its last sample has been recorded."""
        ...

    def hold(self) -> None:
        """Hear nothing until `release`: a file's clock stops, a live microphone discards its
        audio."""
        ...

    def release(self) -> None:
        """Hear again."""
        ...


class PacedSpeaker:
    """A speaker that keeps time by the loop's clock. Its audio sounds elsewhere, e.g. at a client,
    or nowhere.

    With pace `realtime`, samples sound one after the other at the sample rate. With pace `max`,
    everything sounds at once.
    """

    ahead_s = AHEAD_S
    """Seconds of audio that are written to the speaker ahead of the sound."""

    def __init__(self, rate: int, *, pace: Pace = "realtime") -> None:
        self.rate = rate
        self.pace = pace
        # Time is counted in samples since an unbroken stretch began, so that rounding errors do not
        # add up.
        self._since = 0.0
        self._count = 0
        self._lag = 0.0
        """Seconds by which audio sounds later than the count of samples says."""

    @property
    def _end(self) -> float:
        """Time at which the present stretch of sound would end if there were no lag, in seconds of
        the loop's clock."""
        return self._since + self._count / self.rate

    def due(self) -> float:
        """Return when a sample written now would be played, in seconds of the loop's clock."""
        now = anyio.current_time()
        return (now if self.pace == "max" else max(now, self._end)) + self._lag

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that begins."""
        due = self.due()  # read the clock once, or a new stretch would seem to begin
        if due > self._end + self._lag:
            self._since, self._count = due - self._lag, 0
        self._count += len(pcm)
        return due

    def cut(self, fade: int) -> int:
        """Keep the next `fade` samples, discard all later ones, and return how many are
        discarded."""
        dropped = min(self._count, max(0, unplayed(self.due(), self.rate) - fade))
        self._count -= dropped
        return dropped

    async def room(self) -> None:
        """Wait until less than `ahead_s` seconds of audio are written but not yet due."""
        await anyio.sleep_until(self.due() - self._lag - self.ahead_s)


class NullSpeaker(PacedSpeaker):
    """A speaker whose audio goes nowhere."""


def unplayed(until: float, rate: int) -> int:
    """Return the number of whole samples between now and `until`, a time in seconds of the loop's
    clock. A sample that has begun to sound counts as played."""
    return max(0, int((until - anyio.current_time()) * rate + 1e-6))


class PacedMicrophone:
    """A recording that is heard through a microphone, with endless silence after it.

    At real-time pace each frame comes when its last sample would have been recorded, and delays do
    not add up. While the microphone is held, the clock of the recording stops and no frame comes.
    """

    def __init__(self, blocks: Iterable[Pcm], *, pace: Pace = "realtime") -> None:
        """Hear `blocks`, samples at 16 kHz, one after the other."""
        self.pace = pace
        self._blocks = blocks
        self.finished = False
        """Whether the whole recording has been read. After its last frame come only frames of
        silence."""
        self._held_at: float | None = None
        self._released = anyio.Event()
        self._begun = 0.0
        """Time at which sample 0 was recorded, in seconds of the loop's clock. Each hold moves it
        later by the length of the hold."""

    def hold(self) -> None:
        """Stop the recording's clock."""
        if self._held_at is None:
            self._held_at = anyio.current_time()

    def release(self) -> None:
        """Let the recording's clock go on."""
        if self._held_at is not None:
            self._begun += anyio.current_time() - self._held_at
            self._held_at = None
            self._released.set()
            self._released = anyio.Event()

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 10 ms at 16 kHz. It can be called once."""
        self._begun = anyio.current_time()
        if self._held_at is not None:
            self._held_at = self._begun
        framer = Framer()
        for pcm in self._sound(framer.size):
            for frame in framer.feed(pcm):
                await self._recorded(frame)
                yield frame

    def _sound(self, size: int) -> Iterator[Pcm]:
        yield from self._blocks
        self.finished = True
        while True:
            yield silence(size)

    async def _recorded(self, frame: AudioFrame) -> None:
        """Wait until `frame` has been recorded."""
        await anyio.lowlevel.checkpoint()
        while True:
            due = self._begun + frame.end / frame.rate
            if self._held_at is not None:
                await self._released.wait()
            elif self.pace == "max" or due <= anyio.current_time():
                return
            else:
                await anyio.sleep_until(due)


class FileMicrophone(PacedMicrophone):
    """An audio file that is heard through a microphone. It is used as a context manager.

    The constructor raises AudioError if the file cannot be used, and `frames` raises it if the file
    is damaged inside.
    """

    def __init__(self, path: str | Path, *, pace: Pace = "realtime") -> None:
        self._file = AudioFile(path)
        super().__init__(self._file.blocks(), pace=pace)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.__exit__(*error)

    @property
    def info(self) -> AudioInfo:
        """Properties of the file. `AudioInfo.warning` may change until `finished` is true."""
        return self._file.info


class PlayedAudio(PacedSpeaker):
    """A speaker that passes on the samples that it has played.

    Each sample has a place. At real-time pace the place is the sample's index in a recording of the
    loudspeaker, silence included. At pace `max` silence does not count.
    """

    def __init__(
        self,
        rate: int,
        take: Callable[[int, Pcm], None],
        *,
        pace: Pace = "realtime",
        since: float | None = None,
    ) -> None:
        """Call `take(place, pcm)` with samples that were played; `place` is the place of the first
        one. Place 0 is at the time `since`, in seconds of the loop's clock; None means at the first
        sound."""
        super().__init__(rate, pace=pace)
        self._take = take
        self._begun = since
        self._held = silence(0)
        """Samples that may not have been played yet, and so may still be cut."""
        self._place = 0
        """Place of the first sample in `_held`."""

    def finish(self) -> None:
        """Pass on everything that was written."""
        self._settle(0)

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that begins."""
        begin = super().write(pcm)
        if self._begun is None:
            self._begun = self._since
        if self._count == len(pcm) and self.pace == "realtime":
            self._settle(0)
            self._place = max(self._place, round((self._since - self._begun) * self.rate))
        self._held = np.concatenate((self._held, pcm))
        self._settle(unplayed(self.due(), self.rate))
        return begin

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples at most, and return how many samples are
        discarded."""
        dropped = super().cut(fade)
        kept = self._held[: len(self._held) - dropped]
        self._held = fade_out(kept, min(unplayed(self.due(), self.rate), len(kept)))
        return dropped

    def _settle(self, keep: int) -> None:
        """Pass on the held samples, except the last `keep`, which have not been played yet."""
        played = len(self._held) - keep
        if played > 0:
            self._take(self._place, self._held[:played])
            self._place += played
            self._held = self._held[played:]


class WavSpeaker(PlayedAudio):
    """Plays into a wav file.

    At real-time pace the file is a recording of the loudspeaker from the first sound on, with
    silence where nothing sounded. At pace `max` it holds what was played, end to end. Used as a
    context manager, it puts the file in place on success only. Raises AudioError if the file cannot
    be written.
    """

    def __init__(self, path: str | Path, rate: int, *, pace: Pace = "realtime") -> None:
        super().__init__(rate, self._append, pace=pace)
        self._writer = WavWriter(path, rate)
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
            self.finish()
        self._writer.__exit__(kind, error, trace)

    def _append(self, place: int, pcm: Pcm) -> None:
        while (missing := place - self._written) > 0:
            gap = min(missing, self.rate)
            self._writer.write(silence(gap))
            self._written += gap
        self._writer.write(pcm)
        self._written += len(pcm)


class RecordedSpeaker:
    """A speaker that sounds, and another one that records the same audio."""

    def __init__(self, speaker: Speaker, record: PlayedAudio) -> None:
        """Write to `speaker` and to `record`, which have the same rate. All times and counts are
        those of `speaker`."""
        self.rate = speaker.rate
        self._speaker, self._record = speaker, record

    def due(self) -> float:
        """Return when a sample written now would be played, in seconds of the loop's clock."""
        return self._speaker.due()

    def write(self, pcm: Pcm) -> float:
        """Write `pcm` to both, and return when the speaker begins to play it."""
        self._record.write(pcm)
        return self._speaker.write(pcm)

    def cut(self, fade: int) -> int:
        """Cut both, and return how many samples the speaker will now never play."""
        self._record.cut(fade)
        return self._speaker.cut(fade)

    async def room(self) -> None:
        """Wait until the speaker has room for more audio."""
        await self._speaker.room()


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
