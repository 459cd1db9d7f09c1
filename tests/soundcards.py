"""A sound card that tests drive by hand; it implements `portaudio.PortAudioStream`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import anyio
import numpy as np
import numpy.typing as npt

from voiceloop.audio.frames import Channels
from voiceloop.audio.portaudio import Callback, Kind
from voiceloop.types import Pcm

EPOCH = 1e9
"""What the stream's clock shows beyond the loop's, as PortAudio's own does."""


class HandCard:
    """An open stream of one channel or two; `open` is a `portaudio.Opener`."""

    def __init__(self, rate: int = 16_000, *, latency: float = 0.04, channels: int = 2) -> None:
        self.samplerate = float(rate)
        self.latency = latency
        self.channels = channels
        self.state = "unopened"
        self._played: list[Pcm] = [np.zeros(0, np.float32)]
        self._begun: list[float] = [0.0]
        """When each block of `_played` sounded, by the loop's clock."""
        self._call: Callback = lambda *_: None
        self._finish: Callable[[], None] = lambda: None

    def open(
        self,
        kind: Kind,
        name: str | None,
        callback: Callback,
        finished: Callable[[], None],
        rate: int | None = None,
    ) -> tuple[str, HandCard]:
        """Be the device that is called `name`."""
        self._call, self._finish, self.state = callback, finished, "open"
        return name or f"{kind} by hand", self

    @property
    def pcm(self) -> Pcm:
        """What has been played."""
        return np.concatenate(self._played)

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """When each sample sounded, by the loop's clock."""
        blocks = zip(self._begun, self._played, strict=True)
        return np.concatenate([at + np.arange(len(pcm)) / self.samplerate for at, pcm in blocks])

    @property
    def time(self) -> float:
        """The stream's clock."""
        return EPOCH + anyio.current_time()

    def start(self) -> None:
        """Note that it has been called."""
        self.state = "started"

    def abort(self) -> None:
        """Note that it has been called."""
        self.end()

    def close(self) -> None:
        """Note that it has been called."""
        self.state = "closed"

    def end(self) -> None:
        """End the stream, as when the device is unplugged."""
        self.state = "ended"
        self._finish()

    def record(self, pcm: Pcm, *, overflow: bool = False) -> None:
        """Have the microphone's callback called with `pcm` in all channels."""
        self.record_channels(np.repeat(pcm[:, None], self.channels, axis=1), overflow=overflow)

    def record_channels(self, block: Channels, *, overflow: bool = False) -> None:
        """Have the microphone's callback called with `block`, which has a column a channel."""
        self._call(block, len(block), None, SimpleNamespace(input_overflow=overflow))

    def play(self, frames: int, *, underflow: bool = False, mute: bool = False) -> Pcm:
        """Have the speaker's callback called for `frames`, which sound after the latency.

        A `mute` driver does not say when that is.
        """
        block = np.full((frames, self.channels), np.nan, np.float32)
        now = 0.0 if mute else self.time
        times = SimpleNamespace(
            currentTime=now, outputBufferDacTime=now + self.latency * (not mute)
        )
        self._call(block, frames, times, SimpleNamespace(output_underflow=underflow))
        assert np.array_equal(block[:, 0], block[:, -1]), "all channels sound alike"
        begin = anyio.current_time() + self.latency
        self._played.append(block[:, 0].copy())
        self._begun.append(begin)
        return block[:, 0]

    async def run(self, frames: int) -> None:
        """Play `frames` at a time, as time passes, until the stream ends."""
        begun, calls = anyio.current_time(), 0
        while self.state == "started":
            self.play(frames)
            calls += 1
            await anyio.sleep_until(begun + calls * frames / self.samplerate)
