"""Keeps the audio of a turn that is still to be decoded: everything since the last cut, without the
inside of longer pauses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, dbfs, samples, silence
from voiceloop.types import AudioFrame, Pcm

TRIM_AT = 0.75
"""A window is cut when it is longer than this share of the engine's longest window."""
QUIET_MS = 40
"""A window is cut in the middle of the quietest stretch near a word boundary. The stretch has this
length in milliseconds."""


@dataclass(frozen=True, slots=True)
class DecodeJob:
    """A window to decode. `final`, `timed` and `settled` are passed on in an
    `engines.AsrRequest`."""

    pcm: Pcm
    """Samples at 16 kHz, without the silences that are left out."""
    start: int
    """Index in the stream of the first sample."""
    end: int
    """Index in the stream of the sample after the last."""
    final: bool
    timed: bool = False
    """Whether word times must be exact, because the window may be cut between two words."""
    silences: tuple[tuple[int, int], ...] = ()
    """Silences that `pcm` leaves out, each as begin and end samples of the stream."""
    settled: tuple[str, ...] = ()

    def when(self, seconds: float) -> float:
        """Convert a time in `pcm` to the time in the stream; both are in seconds."""
        at = self.start / SPEECH_RATE + seconds
        for begin, end in self.silences:
            if at > begin / SPEECH_RATE:
                at += (end - begin) / SPEECH_RATE
        return at


class TurnWindow:
    """The audio of one turn that is still to be decoded."""

    def __init__(self, audio: AudioFrame, speech_start: int, limit: int) -> None:
        """Begin with `audio`, in which speech begins at sample `speech_start` of the stream. The
        engine decodes at most `limit` samples at once."""
        self.limit = limit
        self._speech_start = speech_start
        self._audio = SampleBuffer(audio.start)
        self._audio.append(audio.pcm)
        self._silences: list[tuple[int, int]] = []
        """Stretches within pauses that are not decoded, each as begin and end samples."""

    @property
    def start(self) -> int:
        """Index in the stream of the first sample that is kept."""
        return self._audio.start

    @property
    def end(self) -> int:
        """Index in the stream of the sample after the last."""
        return self._audio.end

    @property
    def full(self) -> bool:
        """Whether the audio fills the engine's longest window."""
        return self.end - self.start >= self.limit

    def feed(self, frame: AudioFrame) -> None:
        """Take the stream's next frame. Samples that were lost before it count as silence."""
        self._audio.append(silence(frame.start - self._audio.end))
        self._audio.append(frame.pcm)

    def drop(self, before: int) -> None:
        """Forget all audio before sample `before`."""
        self._audio.drop(before)

    def leave_out(self, begin: int, end: int) -> None:
        """Exclude the audio from sample `begin` to `end` from all later decodes."""
        self._silences.append((begin, end))

    def job(self, end: int, *, final: bool, settled: tuple[str, ...] = ()) -> DecodeJob:
        """Return the job that decodes the window up to sample `end`, or up to the engine's limit.
        If the window is long enough to be cut, the job is a final one with exact word times."""
        timed = end - self.start > TRIM_AT * self.limit
        end = min(end, self.start + self.limit)
        silences = tuple(gap for gap in self._silences if gap[0] > self.start and gap[1] < end)
        begins = (self.start, *(after for _, after in silences))
        ends = (*(before for before, _ in silences), end)
        pcm = np.concatenate([self._audio.read(*part) for part in zip(begins, ends, strict=True)])
        return DecodeJob(pcm, self.start, end, final or timed, timed, silences, settled)

    def spoken(self, until: int) -> int:
        """Return how many samples up to sample `until` are decoded, counted from the beginning of
        the speech in the window. Silences that are left out do not count."""
        first = max(self.start, self._speech_start)
        inside = (gap for gap in self._silences if gap[0] > first)
        return until - first - sum(end - begin for begin, end in inside)

    def quietest(self, first: int, last: int) -> tuple[float, int] | None:
        """Find the quietest stretch of `QUIET_MS` between samples `first` and `last`. Return its
        level in dBFS and the sample at its centre. Return None if `first` and `last` are closer
        together than `QUIET_MS`."""
        first, last, size = max(first, self.start), min(last, self.end), samples(QUIET_MS)
        if last - first <= size:
            return None
        pcm = self._audio.read(first, last)
        places = range(0, len(pcm) - size, size // 4)
        levels = [dbfs(pcm[at : at + size]) for at in places]
        best = int(np.argmin(levels))
        return levels[best], first + places[best] + size // 2
