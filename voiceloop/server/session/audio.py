"""A client as microphone and speaker: audio that arrives and leaves in messages.

The microphone yields audio as soon as the client has sent it. Its queue also holds functions that
are called once all audio before them is heard, e.g. to end a turn. The speaker sends audio a little
ahead of real time. It assumes that the client plays audio without delay, until the client reports
what it has played. This module knows no sockets, and of the protocol only the audio formats.
"""

from __future__ import annotations

import math
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
from voiceloop.wire.items import RATE
from voiceloop.wire.settings import AudioFormat, PcmaFormat, PcmFormat, PcmuFormat

MISSING_S = 2.0
"""Seconds without audio in the middle of a turn after which as much silence is heard in its place.
A client may send nothing while its user is muted, and without it the turn would never end."""
MAX_LAG_S = 1.0
"""Maximum playback delay in seconds; if a client reports a longer one, this is assumed."""
TAIL_S = 0.3
"""Seconds of silence that are appended when a client ends a turn. The silence pushes out the last
samples, which resampler and framer hold back, and lets the recogniser hear that speech is over."""

PIECE_MS = 20
"""Length in ms of the pieces into which waiting audio is cut. It is the usual length of a client's
message; more and shorter pieces would cost more work."""

Callback = Callable[[], None]
"""A function that is called once all audio before it in the queue is heard."""


class SocketMicrophone:
    """A microphone for a client's audio, which counts as heard once `frames` has yielded it."""

    finished = False
    """Always False: a client can always send more."""

    def __init__(
        self,
        heard: Callable[[int], None] = lambda position: None,
        lacks: Callable[[], bool] = lambda: False,
    ) -> None:
        """`heard` is called after each frame with the number of samples at 16 kHz up to its end.
        `lacks` returns whether a turn has begun that only more audio can end."""
        self._heard = heard
        self._lacks = lacks
        self._line: deque[Pcm | Callback] = deque()
        self._waiting = 0
        """Length of the audio that has not been heard yet, in samples at `RATE`."""
        self._more = anyio.Event()
        self._format: AudioFormat = PcmFormat()
        """Format of the audio that arrives."""
        self._begin(self._format.rate)
        self._framer = Framer(size=samples(PIECE_MS))
        self.position = 0
        """Number of samples at 16 kHz that have been heard."""

    @property
    def backlog_s(self) -> float:
        """Seconds of audio that have not been heard yet."""
        return self._waiting / RATE

    def take(self, format: AudioFormat) -> None:
        """Set the format of the audio that is fed from now on."""
        if format.rate != self._format.rate:
            self.then(partial(self._begin, format.rate))
        self._format = format

    def feed(self, audio: bytes) -> None:
        """Queue the audio of a message: whole samples in the current format."""
        self._queue(from_wire(audio, self._format))

    def then(self, callback: Callback, *, over: bool = False) -> None:
        """Call `callback` once all audio so far is heard. `over` appends silence of `TAIL_S`
        first."""
        if over:
            self._queue(silence(round(TAIL_S * self._format.rate)))
        self._line.append(callback)
        self._more.set()

    def clear(self) -> None:
        """Drop the audio that has not been heard yet; callbacks stay in the queue."""
        self._line = deque(entry for entry in self._line if callable(entry))
        self._waiting = 0
        self._begin(self._rate)
        self._framer.drop()

    def hold(self) -> None:
        """Do nothing: a client is always heard."""

    def release(self) -> None:
        """Do nothing, since `hold` does nothing."""

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 20 ms at 16 kHz, each as soon as its audio has arrived. If none arrives
        for `MISSING_S` in the middle of a turn, yield silence."""
        while True:
            if not self._line:
                self._more = anyio.Event()
                with anyio.move_on_after(MISSING_S if self._lacks() else math.inf) as waiting:
                    await self._more.wait()
                if waiting.cancelled_caught and self._lacks():
                    self._queue(silence(round(MISSING_S * self._format.rate)))
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
                if self._line:  # a client may send a minute of audio at once: let others run
                    await anyio.lowlevel.checkpoint()

    def _queue(self, pcm: Pcm) -> None:
        self._waiting += len(pcm) * (RATE // self._format.rate)
        # Small pieces, so that `clear` can still drop what has not been heard.
        size = samples(PIECE_MS, self._format.rate)
        self._line.extend(pcm[at : at + size] for at in range(0, len(pcm), size))
        self._more.set()

    def _begin(self, rate: int) -> None:
        """Expect audio of sample rate `rate` next in the queue, and begin a resampler for it."""
        self._rate = rate
        self._resampler = LiveResampler(rate, SPEECH_RATE)


class SocketSpeaker(PacedSpeaker):
    """A speaker that sends audio to a client, at `RATE`. `ResponseEncoder` encodes it."""

    ahead_s = 0.2
    """Seconds of audio that are sent before they are due. After an interruption the client has to
    drop up to this much."""

    def __init__(self, send: Callable[[Pcm], None]) -> None:
        """`send` is called with the audio to send, each sample once."""
        super().__init__(RATE)
        self._send = send
        self._sent_already = 0
        """Number of samples that `cut` took back although the client has them. If they are written
        once more, they are not sent again."""

    def begin(self) -> None:
        """Begin the audio of a new response, of which the client has nothing yet."""
        self._sent_already = 0

    def write(self, pcm: Pcm) -> float:
        """Play `pcm` after all earlier audio. Return when it begins, in s of the loop's clock."""
        due = super().write(pcm)
        known = min(self._sent_already, len(pcm))
        self._sent_already -= known
        if known < len(pcm):
            self._send(pcm[known:])
        return due

    def cut(self, fade: int) -> int:
        """Take back all unplayed audio after the next `fade` samples, and return its length in
        samples. The client itself fades out and drops what it has."""
        dropped = super().cut(fade)
        self._sent_already += dropped
        return dropped

    def played(self, samples: int, sent: int) -> None:
        """Set the playback delay from a report: the client has played `samples` samples by now.

        `sent` is the number of samples of the response that have been written so far.
        """
        expected = sent - unplayed(self._end, RATE)
        self._lag = min(MAX_LAG_S, max(0.0, (expected - samples) / RATE))


class ResponseEncoder:
    """An encoder of one response's audio, from `RATE` to the bytes in the client's format."""

    def __init__(self, format: AudioFormat) -> None:
        self._format = format
        self._resampler = LiveResampler(RATE, format.rate)

    def feed(self, pcm: Pcm) -> bytes:
        """Return the next audio as bytes. Samples beyond -1 and 1 are clipped."""
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
    """Decode the audio of a message, whole samples in `format`."""
    match format:
        case PcmFormat():
            return from_pcm16(np.frombuffer(audio, "<i2"))
        case PcmuFormat():
            return from_pcm16(g711.decode(audio, "mu"))
        case PcmaFormat():
            return from_pcm16(g711.decode(audio, "a"))
