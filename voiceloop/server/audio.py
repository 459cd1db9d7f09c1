"""A client as microphone and speaker: audio that comes and goes in messages.

The microphone is as fast as its client; whatever is said about the audio, such as that a turn is
over, takes its place in line with it. The speaker hands audio out a little ahead of real time and
counts it as played when a client that plays at once has played it, or when the client says so.
This module knows no sockets and no events of the wire but the formats of audio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from functools import partial

import anyio
import anyio.lowlevel
import numpy as np

from voiceloop.audio import g711
from voiceloop.audio.devices import PacedSpeaker, unplayed
from voiceloop.audio.frames import (
    SPEECH_RATE,
    Framer,
    LiveResampler,
    from_pcm16,
    samples,
    silence,
)
from voiceloop.types import AudioFrame, Pcm
from voiceloop.wire.settings import AudioFormat, PcmaFormat, PcmFormat, PcmuFormat
from voiceloop.wire.sound import RATE

MAX_LAG_S = 1.0
"""A client that says it plays later than this is not believed."""
TAIL_S = 0.3
"""Silence behind the last sample of a turn that a client ends: resampler and framer hold some of
what came before, and a recogniser wants to hear that it is over."""

PIECE_MS = 20
"""What waits together, and is heard at once: clients send as much, and less would cost more."""

Mark = Callable[[], None]


class SocketMicrophone:
    """What a client sends; implements `devices.Microphone`."""

    finished = False
    """Silence never becomes all that can follow."""

    def __init__(self, heard: Callable[[int], None] = lambda position: None) -> None:
        """`heard` is told of every frame, by the number of samples at 16 kHz up to its end."""
        self._heard = heard
        self._line: deque[Pcm | Mark] = deque()
        self._waiting = 0
        """Samples at `RATE` that nobody has heard yet."""
        self._more = anyio.Event()
        self._format: AudioFormat = PcmFormat()
        """What comes."""
        self._begin(self._format.rate)
        self._framer = Framer(size=samples(PIECE_MS))
        self.position = 0
        """Samples at 16 kHz that have been heard."""

    @property
    def backlog_s(self) -> float:
        """Seconds of audio that nobody has heard yet."""
        return self._waiting / RATE

    def take(self, format: AudioFormat) -> None:
        """What is fed from now on is in this format."""
        if format.rate != self._format.rate:
            self.then(partial(self._begin, format.rate))
        self._format = format

    def feed(self, audio: bytes) -> None:
        """More audio, as it is in messages: whole samples."""
        self._queue(from_wire(audio, self._format))

    def then(self, mark: Mark, *, over: bool = False) -> None:
        """Call `mark` when all audio so far has been heard; silence follows where it is `over`."""
        if over:
            self._queue(silence(round(TAIL_S * self._format.rate)))
        self._line.append(mark)
        self._more.set()

    def clear(self) -> None:
        """Forget what nobody has heard yet; marks stay in line."""
        self._line = deque(entry for entry in self._line if callable(entry))
        self._waiting = 0
        self._begin(self._rate)
        self._framer.drop()

    def hold(self) -> None:
        """See `Microphone.hold`; a client is always heard."""

    def release(self) -> None:
        """See `Microphone.release`."""

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Frames of 20 ms at 16 kHz, as soon as they have come."""
        while True:
            if not self._line:
                self._more = anyio.Event()
                await self._more.wait()
                continue
            entry = self._line.popleft()
            if callable(entry):
                entry()
                continue
            self._waiting -= len(entry) * (RATE // self._rate)
            for frame in self._framer.feed(self._resampler.feed(entry)):
                self.position = frame.end
                yield frame
                self._heard(frame.end)
                if self._line:  # a client may send a minute at once; others want to be heard
                    await anyio.lowlevel.checkpoint()

    def _queue(self, pcm: Pcm) -> None:
        self._waiting += len(pcm) * (RATE // self._format.rate)
        # In small pieces, since what is not heard yet may still be forgotten.
        size = samples(PIECE_MS, self._format.rate)
        self._line.extend(pcm[at : at + size] for at in range(0, len(pcm), size))
        self._more.set()

    def _begin(self, rate: int) -> None:
        """What stands in line from here on has this rate."""
        self._rate = rate
        self._resampler = LiveResampler(rate, SPEECH_RATE)


class SocketSpeaker(PacedSpeaker):
    """What a client is sent, at `RATE`; `ResponseEncoder` makes its format of it."""

    ahead_s = 0.2
    """At an interruption the client has so much to drop."""

    def __init__(self, send: Callable[[Pcm], None]) -> None:
        """`send` is given what is to go out, once each."""
        super().__init__(RATE)
        self._send = send
        self._sent_already = 0
        """Samples that the client has although they were taken back: it paused, and goes on."""

    def begin(self) -> None:
        """What is written from now on belongs to something new."""
        self._sent_already = 0

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all that was written before, and return when that begins."""
        due = super().write(pcm)
        known = min(self._sent_already, len(pcm))
        self._sent_already -= known
        if known < len(pcm):
            self._send(pcm[known:])
        return due

    def cut(self, fade: int) -> int:
        """Fade out over the next `fade` samples, and forget what comes after them."""
        dropped = super().cut(fade)
        self._sent_already += dropped
        return dropped

    def played(self, samples: int, sent: int) -> None:
        """The client has just played sample number `samples` of something of which it got `sent`.

        What is still to come after `sent` is written now.
        """
        expected = sent - unplayed(self._end, RATE)
        self._lag = min(MAX_LAG_S, max(0.0, (expected - samples) / RATE))


class ResponseEncoder:
    """Makes one response, a stream at `RATE`, what messages carry."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._resampler = LiveResampler(RATE, format.rate)

    def feed(self, pcm: Pcm) -> bytes:
        """More of it as bytes; what is too loud is clipped."""
        loud = np.clip(self._resampler.feed(pcm), -1, 1)
        integers = np.rint(loud * 32767).astype(np.int16)
        match self._format:
            case PcmFormat():
                return integers.astype("<i2").tobytes()
            case PcmuFormat():
                return g711.encode(integers, "mu")
            case PcmaFormat():
                return g711.encode(integers, "a")


def from_wire(audio: bytes, format: AudioFormat) -> Pcm:
    """The samples that messages carry."""
    match format:
        case PcmFormat():
            return from_pcm16(np.frombuffer(audio, "<i2"))
        case PcmuFormat():
            return from_pcm16(g711.decode(audio, "mu"))
        case PcmaFormat():
            return from_pcm16(g711.decode(audio, "a"))
