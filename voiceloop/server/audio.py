"""A client as microphone and speaker: audio that arrives and leaves in messages.

The microphone is as fast as its client. Marks, such as the end of a turn, wait in line with the
audio. The speaker sends audio a little ahead of real time. It counts audio as played when a client
that plays at once has played it, or when the client reports it. This module knows no sockets, and
of the protocol only the audio formats.
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
"""Longest playback delay in seconds that a client's report can cause."""
TAIL_S = 0.3
"""Seconds of silence after a turn that a client ends. Resampler and framer hold back the last
samples, and the recogniser needs to hear that speech is over."""

PIECE_MS = 20
"""Length in ms of the pieces in which audio waits. Clients send as much; less costs more."""

Mark = Callable[[], None]


class SocketMicrophone:
    """A microphone for a client's audio, which counts as heard once `frames` has yielded it."""

    finished = False
    """Always False: a client can always send more."""

    def __init__(self, heard: Callable[[int], None] = lambda position: None) -> None:
        """`heard` is called after each frame with the number of samples at 16 kHz up to its end."""
        self._heard = heard
        self._line: deque[Pcm | Mark] = deque()
        self._waiting = 0
        """Samples at `RATE` that have not been heard yet."""
        self._more = anyio.Event()
        self._format: AudioFormat = PcmFormat()
        """Format of the audio that arrives."""
        self._begin(self._format.rate)
        self._framer = Framer(size=samples(PIECE_MS))
        self.position = 0
        """Samples at 16 kHz that have been heard."""

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

    def then(self, mark: Mark, *, over: bool = False) -> None:
        """Call `mark` once all audio so far is heard; with `over`, also silence of `TAIL_S`."""
        if over:
            self._queue(silence(round(TAIL_S * self._format.rate)))
        self._line.append(mark)
        self._more.set()

    def clear(self) -> None:
        """Drop the audio that has not been heard yet; marks stay in line."""
        self._line = deque(entry for entry in self._line if callable(entry))
        self._waiting = 0
        self._begin(self._rate)
        self._framer.drop()

    def hold(self) -> None:
        """Do nothing: a client is always heard."""

    def release(self) -> None:
        """Do nothing, since `hold` does nothing."""

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 20 ms at 16 kHz, each as soon as its audio has arrived."""
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
                if self._line:  # a client may send a minute of audio at once: let others run
                    await anyio.lowlevel.checkpoint()

    def _queue(self, pcm: Pcm) -> None:
        self._waiting += len(pcm) * (RATE // self._format.rate)
        # Small pieces, so that `clear` can still drop what has not been heard.
        size = samples(PIECE_MS, self._format.rate)
        self._line.extend(pcm[at : at + size] for at in range(0, len(pcm), size))
        self._more.set()

    def _begin(self, rate: int) -> None:
        """Set the sample rate of the audio that comes next in line."""
        self._rate = rate
        self._resampler = LiveResampler(rate, SPEECH_RATE)


class SocketSpeaker(PacedSpeaker):
    """A speaker that sends audio to a client, at `RATE`. `ResponseEncoder` encodes it."""

    ahead_s = 0.2
    """Seconds of audio sent ahead of time. At an interruption the client drops as much."""

    def __init__(self, send: Callable[[Pcm], None]) -> None:
        """`send` is called with the audio to send, each sample once."""
        super().__init__(RATE)
        self._send = send
        self._sent_already = 0
        """Samples that `cut` took back although the client has them; they are not sent again."""

    def begin(self) -> None:
        """Begin the audio of a new response: the client has none of it."""
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
        """Fade out over the next `fade` samples, and drop the rest. Return how many that is."""
        dropped = super().cut(fade)
        self._sent_already += dropped
        return dropped

    def played(self, samples: int, sent: int) -> None:
        """Set the playback delay: the client has just played sample `samples` of the `sent` ones.

        Audio that is written from now on comes after `sent`.
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
    """Decode the audio of a message."""
    match format:
        case PcmFormat():
            return from_pcm16(np.frombuffer(audio, "<i2"))
        case PcmuFormat():
            return from_pcm16(g711.decode(audio, "mu"))
        case PcmaFormat():
            return from_pcm16(g711.decode(audio, "a"))
