"""Removes from the frames of a microphone the echo of a loudspeaker beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from voiceloop.audio.echo.canceller import EchoCanceller
from voiceloop.audio.echo.trial import Duplex
from voiceloop.audio.frames import SPEECH_RATE, LiveResampler, SampleBuffer
from voiceloop.types import AudioFrame, Pcm


class RecordingDevice(Protocol):
    """A device that knows when a sample was recorded."""

    @property
    def stretch(self) -> tuple[int, int]:
        """Return how often a device was opened, and how often the present one has lost samples.
        Times before a change of either number cannot be compared with times after it."""
        ...

    def recorded_at(self, index: int) -> float | None:
        """Return the time at which the sample with this index (at 16 kHz) was recorded, in seconds
        of the sound system's clock. None while it is not known."""
        ...


class PlayingDevice(Protocol):
    """A device that knows what it has played, and when."""

    rate: int
    """Sample rate in hertz."""

    @property
    def stretch(self) -> tuple[int, int]:
        """Return how often a device was opened, and how often the present one has run out of
        samples. Times before a change of either number cannot be compared with times after it."""
        ...

    def taken(self) -> Pcm:
        """Return the samples that the device has taken since the last call, silence included."""
        ...

    def sounding_at(self, time: float) -> float | None:
        """Return the index of the sample that sounds at `time`, in seconds of the sound system's
        clock. The index counts all samples that the device has taken, and may lie between two of
        them. None while it is not known."""
        ...


class EchoFilter:
    """Removes from the frames of a microphone what a speaker beside it plays."""

    def __init__(
        self,
        recorder: RecordingDevice,
        speaker: PlayingDevice,
        deaf: Callable[[], None] = lambda: None,
    ) -> None:
        """`recorder` is the device that records the frames, and `speaker` is the device that plays
        beside it. Call `deaf` once if the echo cannot be removed, so that nothing is heard during
        replies."""
        self._recorder, self._speaker, self._deaf = recorder, speaker, deaf
        self._played = SampleBuffer()
        self.canceller = EchoCanceller(self._played)
        self._resampler = LiveResampler(speaker.rate, SPEECH_RATE)
        self._aligned = (0, 0), (0, 0)
        self._told = False

    def process(self, frame: AudioFrame) -> AudioFrame:
        """Return `frame` without echo."""
        speaker, canceller = self._speaker, self.canceller
        self._played.append(self._resampler.feed(speaker.taken()))
        stretches = self._recorder.stretch, speaker.stretch
        if stretches != self._aligned and (ahead := self._ahead(frame.start)) is not None:
            canceller.begin(ahead)
            self._aligned = stretches
        pcm = canceller.cancel(frame.pcm)
        if canceller.duplex is Duplex.HALF and not self._told:
            self._told = True
            self._deaf()
        return replace(frame, pcm=pcm)

    def _ahead(self, index: int) -> int | None:
        """Return the offset for `EchoCanceller.begin` by the devices' times: the played sample that
        sounded when sample `index` was recorded, minus `index`. None while it is not known."""
        time = self._recorder.recorded_at(index)
        sounding = None if time is None else self._speaker.sounding_at(time)
        if sounding is None:
            return None
        return round(sounding * SPEECH_RATE / self._speaker.rate) - index
