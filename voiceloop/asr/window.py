"""What of a turn's audio is still to be decoded: all since the last cut, without the insides of
pauses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voiceloop.asr.turns import SpeechStarted
from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, dbfs, samples, silence
from voiceloop.types import AudioFrame, Pcm

TRIM_AT = 0.75
"""Part of what an engine takes at once from which on a window is cut."""
PAUSE_EDGE_MS = 64
"""What is decoded of a silence within a turn at either end. Of a hundred questions with pauses of
200 to 700 ms, the starter gets 7 % of the words wrong with whole silences, 3 % with these edges."""
QUIET_MS = 40
"""Length over which the quietest place for a cut is looked for."""


@dataclass(frozen=True, slots=True)
class DecodeJob:
    """A window to decode, by `asr.transcribe` with `final`, `timed` and `settled`."""

    turn: int
    pcm: Pcm
    """At 16 kHz; without the silences that are left out."""
    start: int
    """Index of the first sample in the stream."""
    end: int
    """Index of the sample after the last."""
    final: bool
    """True where the best decode is wanted."""
    timed: bool = False
    """True where exact word times are wanted: the buffer may be cut between two words."""
    silences: tuple[tuple[int, int], ...] = ()
    """Where `pcm` leaves out a silence, as beginning and end in the stream."""
    settled: tuple[str, ...] = ()
    """Words that two decodes agreed on."""

    def when(self, seconds: float) -> float:
        """The time in the stream of what is `seconds` from the beginning of `pcm`."""
        at = self.start / SPEECH_RATE + seconds
        for begin, end in self.silences:
            if at > begin / SPEECH_RATE:
                at += (end - begin) / SPEECH_RATE
        return at


class Window:
    """The audio of one turn."""

    def __init__(self, started: SpeechStarted, recent: SampleBuffer, limit: int) -> None:
        """`recent` holds the stream from `started.start` to now; `feed` brings what follows. The
        engine takes `limit` samples at once."""
        self.limit = limit
        self._speech_start = started.speech_start
        self._audio = SampleBuffer(started.start)
        self._audio.append(recent.read(started.start, recent.end))
        self._silences: list[tuple[int, int]] = []
        """Stretches within pauses that are not decoded."""

    @property
    def start(self) -> int:
        """Index of the first sample that is kept."""
        return self._audio.start

    @property
    def end(self) -> int:
        """Index of the sample after the last."""
        return self._audio.end

    def feed(self, frame: AudioFrame) -> None:
        """The stream's next frame; samples that were lost before it count as silence."""
        self._audio.append(silence(frame.start - self._audio.end))
        self._audio.append(frame.pcm)

    def drop(self, before: int) -> None:
        """Decode nothing before that sample any more."""
        self._audio.drop(before)

    def leave_out(self, begin: int, end: int) -> None:
        """Decode nothing between those samples."""
        self._silences.append((begin, end))

    def job(self, turn: int, end: int, *, final: bool, settled: tuple[str, ...] = ()) -> DecodeJob:
        """What there is to decode up to sample `end`, or as much of it as can be."""
        timed = end - self.start > TRIM_AT * self.limit
        end = min(end, self.start + self.limit)
        silences = tuple(gap for gap in self._silences if gap[0] > self.start and gap[1] < end)
        begins = (self.start, *(after for _, after in silences))
        ends = (*(before for before, _ in silences), end)
        pcm = np.concatenate([self._audio.read(*part) for part in zip(begins, ends, strict=True)])
        return DecodeJob(turn, pcm, self.start, end, final or timed, timed, silences, settled)

    def spoken(self, until: int) -> int:
        """Samples of speech that are decoded, up to that one."""
        first = max(self.start, self._speech_start)
        inside = (gap for gap in self._silences if gap[0] > first)
        return until - first - sum(end - begin for begin, end in inside)

    def quietest(self, first: int, last: int) -> tuple[float, int] | None:
        """Level and place of the quietest spot between those samples, if it is between any."""
        first, last, size = max(first, self.start), min(last, self.end), samples(QUIET_MS)
        if last - first <= size:
            return None
        pcm = self._audio.read(first, last)
        places = range(0, len(pcm) - size, size // 4)
        levels = [dbfs(pcm[at : at + size]) for at in places]
        best = int(np.argmin(levels))
        return levels[best], first + places[best] + size // 2
