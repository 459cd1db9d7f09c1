"""The sound card: a live microphone and a live speaker, which implement the protocols of `devices`.

Each has one stream at the device's own rate, which is always open. Its callback runs on one of
PortAudio's threads, and only mixes channels, copies samples and counts. Everything else happens on
the event loop. While a device is away, its microphone hears silence, so that time goes on, and its
speaker keeps the audio that it is given, and plays it later. This module knows nothing of
conversations.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from time import sleep
from typing import Any, Self

import anyio
import anyio.lowlevel
import numpy as np

from voiceloop.audio.devices import AHEAD_S
from voiceloop.audio.frames import (
    SPEECH_RATE,
    Framer,
    LiveResampler,
    Mixer,
    SampleBuffer,
    samples,
    silence,
)
from voiceloop.audio.playback import FADE_MS
from voiceloop.audio.portaudio import LATENCY_S, NAMES, Kind, Opener, open_stream
from voiceloop.errors import DeviceError
from voiceloop.types import AudioFrame, Pcm

BACKLOG_S = 5.0
"""Maximum seconds of recorded audio that wait for a busy event loop. Beyond that the oldest audio
is lost."""
TAIL_S = 0.15
"""Seconds for which the room and the sound card still sound after a reply. A microphone that is
released stays deaf for this long."""
STALL_S = 5.0
"""Seconds after which a microphone that gives no audio, or a speaker that takes none, counts as
failed."""
POLL_S = 0.002
"""Minimum wait for room, in seconds. Callbacks come in steps of a few milliseconds."""


Lose = Callable[[DeviceError], None]
"""A function that is called with an error when a device has stopped working. It has the device
closed, opened again and plugged in."""


class _Card(ABC):
    """The base class of microphone and speaker: a device that is open until the `with` block
    ends."""

    kind: Kind

    def __init__(self, device: str | None, opener: Opener, lose: Lose | None) -> None:
        self._lock = threading.Lock()
        """Lock that the callback and the event loop hold only while they copy samples."""
        self.plugged = 1
        """How often a device was plugged in."""
        self.away = False
        """Whether the device is closed, and waits for `plug`."""
        self._lose = lose
        self._opener = partial(opener, self.kind, device, self._called, self._finished)
        self.open()

    def open(self, rate: int | None = None) -> None:
        """Open the device at `rate` hertz; None means its own rate. Raises DeviceError."""
        self._started = self.ended = False
        """Whether the device was started (`_started`), and whether it has stopped working
        (`ended`)."""
        self.name, self._stream = self._opener(rate)
        self.device_rate = round(self._stream.samplerate)
        """Sample rate of the device, in hertz."""
        self._is_open = True

    def plug(self) -> None:
        """Use the device that was opened again."""
        self.plugged, self.away = self.plugged + 1, False

    def close(self) -> None:
        """Give the device back."""
        self.away = True
        if self._started and not self.ended:
            self._stream.abort()
        if self._is_open:
            self._stream.close()
        self._started = self._is_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the stream. It takes a moment, so call it before the session. Raises
        DeviceError."""
        self._started = True
        try:
            self._stream.start()
        except Exception as error:  # of sounddevice, which is not imported here
            raise self.gone() from error

    @abstractmethod
    def _called(self, pcm: Any, frames: int, time: Any, status: Any) -> None:
        """Take samples from the device (microphone), or give it samples (speaker). PortAudio calls
        this on its own thread."""

    def _finished(self) -> None:
        self.ended = True

    def _lost(self, plugged: int) -> None:
        """Note that the device, the one that was plugged in as number `plugged`, has stopped
        working. Raises DeviceError if nobody opens it again."""
        if self._lose is None:
            raise self.gone()
        if not self.away and self.plugged == plugged:
            self._lose(self.gone())

    def gone(self) -> DeviceError:
        """Return the error that tells the user that the device is gone."""
        return DeviceError(
            f"the {NAMES[self.kind]} '{self.name}' has stopped working",
            f"connect it again and start anew, or choose another with --{self.kind}",
        )


class SoundcardMicrophone(_Card):
    """A live microphone; implements `devices.Microphone`.

    Call `start` before `frames`. Audio that is lost because the event loop is too busy is replaced
    by silence, so that the frames stay in step with time. While held, no frames come.
    """

    kind = "input"
    finished = False
    """A live microphone never finishes."""

    def __init__(
        self, device: str | None = None, *, opener: Opener = open_stream, lose: Lose | None = None
    ) -> None:
        """Open the default microphone, or the one that `open_stream` finds by the name `device`.
        `lose` is called when it has stopped working; if it is None, `frames` raises DeviceError."""
        self.lost_s = 0.0
        """Seconds of audio lost because the event loop was too busy."""
        self.overflows = 0
        """How often the device itself lost samples. It does not say how many."""
        self._first = self._index = 0
        """Index, at the device's rate, of the first sample of the device's frames (`_first`), and
        the index of that sample in the stream of all frames (`_index`)."""
        self._wake = _nothing
        self._woken = False
        super().__init__(device, opener, lose)

    def open(self, rate: int | None = None) -> None:
        """Open the device, and forget what was recorded before."""
        super().open(rate)
        self._recent = SampleBuffer(most=round(BACKLOG_S * self.device_rate))
        """Recorded samples that the event loop has not taken."""
        self._mixer = Mixer(self.device_rate)
        self._next = 0
        """Index, at the device's rate, of the next sample to come."""
        self._deaf_until = 0
        """Index of the first sample that is to be heard."""
        self._begun: float | None = None
        """Time at which the sample with index 0 was recorded, in seconds of the stream's clock.
        None before the first callback."""

    def hold(self) -> None:
        """Discard audio that is recorded from now on, and audio that has not been heard yet."""
        self._deaf_until = sys.maxsize

    def release(self) -> None:
        """Hear again, once the speaker's last sound has died away."""
        tail = round((self._stream.latency + TAIL_S) * self.device_rate)
        with self._lock:
            self._deaf_until = self._recent.end + tail

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 10 ms at 16 kHz from now on, silent ones while the device is away."""
        framer = Framer()
        while True:
            plugged = self.plugged
            if not self.away:
                async with aclosing(self._heard(framer, plugged)) as frames:
                    async for frame in frames:
                        yield frame
                self._lost(plugged)
            framer.drop()
            begun, first = anyio.current_time(), framer.position
            while self.away or self.plugged == plugged:
                for frame in framer.feed(silence(framer.size)):
                    yield frame
                await anyio.sleep_until(begun + (framer.position - first) / SPEECH_RATE)

    async def _heard(self, framer: Framer, plugged: int) -> AsyncGenerator[AudioFrame, None]:
        """Yield the frames of the open device, the one that was plugged in as number `plugged`,
        until it is gone."""
        loop, filled = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            self._woken = False
            self._recent.take_all()
            self._first = self._next = self._recent.start
        self._index = framer.position
        self._wake = partial(loop.call_soon_threadsafe, filled.set)
        resampler = LiveResampler(self.device_rate, SPEECH_RATE)
        try:
            while True:
                with anyio.move_on_after(STALL_S):
                    await filled.wait()
                # Another device may be plugged in while the consumer is busy with a frame.
                if self.ended or self.away or self.plugged != plugged or not filled.is_set():
                    return
                filled.clear()
                heard = resampler.feed(self._recorded())
                for at in range(0, len(heard), framer.size):
                    for frame in framer.feed(heard[at : at + framer.size]):
                        yield frame
                    if self.plugged != plugged or self._deaf_until > self._next:
                        break
        finally:
            with self._lock:  # so that no callback wakes a loop that may have ended
                self._wake = _nothing

    @property
    def stretch(self) -> tuple[int, int]:
        """Return how often a device was plugged in, and how often one has lost samples."""
        return self.plugged, self.overflows

    def recorded_at(self, index: int) -> float | None:
        """Return when the sample with this index (at 16 kHz) of the frames was recorded, in seconds
        of the stream's clock. None before the first callback, and while the device is away."""
        if self._begun is None or self.away:
            return None
        since = (index - self._index) / SPEECH_RATE
        return self._begun + self._first / self.device_rate + since

    def _recorded(self) -> Pcm:
        """Return the recorded samples that are to be heard, with silence in place of lost ones."""
        with self._lock:
            self._woken = False
            start, pcm = self._recent.take_all()
        expected, self._next = self._next, start + len(pcm)
        begin = min(max(expected, self._deaf_until), self._next)
        lost = max(0, start - begin)
        self.lost_s += lost / self.device_rate
        return np.concatenate((silence(lost), pcm[max(0, begin - start) :]))

    def _called(self, pcm: Any, frames: int, time: Any, status: Any) -> None:
        mono = self._mixer.feed(pcm)
        with self._lock:
            if self._begun is None or status.input_overflow:
                lag = time.currentTime - time.inputBufferAdcTime if time else 0.0
                if not 0 < lag < STALL_S:  # some drivers do not say
                    lag = self._stream.latency
                self._begun = self._stream.time - lag - self._recent.end / self.device_rate
            self._recent.append(mono)
            if not self._woken:
                self._wake()
            self._woken = True
        self.overflows += bool(status.input_overflow)

    def _finished(self) -> None:
        super()._finished()
        with self._lock:
            self._wake()


class SoundcardSpeaker(_Card):
    """A live speaker; implements `devices.Speaker`.

    Call `start` before anything is written. Audio that the device has already taken, about
    `LATENCY_S`, cannot be cut any more.
    """

    kind = "output"

    def __init__(
        self,
        device: str | None = None,
        *,
        opener: Opener = open_stream,
        lose: Lose | None = None,
    ) -> None:
        """Open the default speaker, or the one that `open_stream` finds by the name `device`.
        `lose` is called when it has stopped working; if it is None, `room` raises DeviceError."""
        self.underflows = 0
        """How often the device ran out of samples although some were waiting."""
        self.gaps = 0
        """How often the device ran out of samples, whether or not some were waiting."""
        # Time is counted in samples from the beginning of an unbroken stretch. Devices tell time
        # in steps, so by their times the next sample could seem to be early or late.
        self._since = 0.0
        self._count = 0
        self._broken = True
        """Whether the next sample written does not directly follow the last one."""
        self._back = anyio.Event()
        super().__init__(device, opener, lose)
        self.rate = self.device_rate
        self._written = SampleBuffer()
        """Written samples that the device has not taken."""
        self._taken = SampleBuffer(most=round(BACKLOG_S * self.rate))
        """Samples that the device has taken since the last call of `taken`, silence included."""
        self._overlay, self._mixed = SampleBuffer(most=self.rate), silence(self.rate)
        """Samples to mix into the written ones (`_overlay`), and a buffer for a block of them
        (`_mixed`)."""

    def open(self, rate: int | None = None) -> None:
        """Open the device. Samples that wait are played by it."""
        super().open(rate)
        self._next: float | None = None
        """When the next sample that the device takes will sound, by the stream's clock. None before
        the first callback."""

    def plug(self) -> None:
        """Use the device that was opened again, and wake who waits for room."""
        super().plug()
        self._back.set()
        self._back = anyio.Event()

    def close(self) -> None:
        """Give the device back. The samples that it has not taken wait for the next device, and
        those of the overlay are dropped."""
        super().close()
        self._broken = True
        with self._lock:
            self._overlay.drop(self._overlay.end)

    def __exit__(self, *error: object) -> None:
        if self._started and not self.ended and len(self._written):
            self.cut(samples(FADE_MS, self.rate))
            sleep(2 * LATENCY_S)  # until the fade has sounded: breaking off there would click
        super().__exit__(*error)

    def due(self) -> float:
        """Return when a sample written now would be played, in seconds of the loop's clock."""
        with self._lock:
            return self._due()

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that begins."""
        with self._lock:
            due = self._due()
            if self._broken and not self.away:
                self._since, self._count, self._broken = due, 0, False
            self._count += len(pcm)
            self._written.append(pcm)
        return due

    def overlay(self, pcm: Pcm) -> None:
        """Mix `pcm`, up to a second, at once into the audio that is playing. These samples count
        neither as written nor as taken. So they delay no reply, and their echo is not removed.
        While the device is away, they are dropped."""
        if self.away:
            return
        with self._lock:
            self._overlay.append(pcm)

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples at most, and return how many samples are
        discarded."""
        with self._lock:
            dropped = self._written.cut(fade)
            self._count -= dropped
        return dropped

    async def room(self) -> None:
        """Wait until the device is there, and less than `AHEAD_S` seconds of audio are written but
        not yet taken by it."""
        await anyio.lowlevel.checkpoint()
        while True:
            plugged = self.plugged
            if not self.away:
                if await self._has_room():
                    return
                self._lost(plugged)
            await self._back.wait()

    async def _has_room(self) -> bool:
        """Wait for room. Returns False once the device is gone, or takes nothing any more."""
        limit = round(AHEAD_S * self.rate)
        moved, position = anyio.current_time(), self._written.start
        while not self.ended and not self.away:
            if (excess := len(self._written) - limit) < 0:
                return True
            if self._written.start != position:
                moved, position = anyio.current_time(), self._written.start
            elif anyio.current_time() > moved + STALL_S:
                return False
            await anyio.sleep(max(POLL_S, excess / self.rate))
        return False

    @property
    def stretch(self) -> tuple[int, int]:
        """Return how often a device was plugged in, and how often one has run out of samples."""
        return self.plugged, self.gaps

    def taken(self) -> Pcm:
        """Return the samples that the device has taken since the last call, silence included."""
        with self._lock:
            return self._taken.take_all()[1]

    def sounding_at(self, time: float) -> float | None:
        """Return the index of the sample that sounds at `time`, in seconds of the stream's clock.
        The index counts all samples that were taken. None before the first callback, and while the
        device is away."""
        with self._lock:
            if self._next is None or self.away:
                return None
            return self._taken.end - (self._next - time) * self.rate

    def _due(self) -> float:
        if not self._broken:
            return self._since + self._count / self.rate
        wait = len(self._written) / self.rate
        if self._next is not None and not self.away:
            wait += max(0.0, self._next - self._stream.time)
        return anyio.current_time() + wait

    def _called(self, pcm: Any, frames: int, time: Any, status: Any) -> None:
        lead = time.outputBufferDacTime - time.currentTime
        if not 0 < lead < STALL_S:  # some drivers do not say
            lead = self._stream.latency
        with self._lock:
            count = self._written.take(pcm[:, 0])
            pcm[count:] = 0
            self._taken.append(pcm[:, 0])
            self._broken = self._broken or count < frames or bool(status.output_underflow)
            self._next = self._stream.time + lead + frames / self.rate
            over = self._overlay.take(self._mixed[:frames])
        pcm[:over, 0] += self._mixed[:over]
        pcm[:, 1:] = pcm[:, :1]
        self.gaps += bool(status.output_underflow)
        self.underflows += bool(count and status.output_underflow)


def _nothing() -> None:
    """Do nothing: nobody waits to be woken."""
