"""Keeps the audio of a turn that is still to be decoded: everything since the last cut, without the
inside of longer pauses. It also finds sound that a decode left without words.

Where two sentences meet, Whisper may give only one of them. Its attention then stays with one token
during all of the other sentence. So a decode is doubted in two cases: one token lasts for seconds
of sound, or words on which partial decodes agreed (settled words) are missing.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from voiceloop.asr.transcript import normalise
from voiceloop.audio.frames import SPEECH_RATE, SampleBuffer, dbfs, levels, samples, silence
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


STEP = 160
"""Samples in a step; each step has one level."""
STEP_S = STEP / SPEECH_RATE
FLOOR_SHARE = 0.1
"""Quantile of the levels that is taken as the background level."""
ABOVE_FLOOR_DB, BELOW_PEAK_DB = 8.0, 35.0
"""Limits in decibels. Sound is louder than the background plus `ABOVE_FLOOR_DB`, and louder than
the loudest step minus `BELOW_PEAK_DB`."""
LONG_S = 1.5
"""Seconds of sound in which people always say more than one token."""
TOKEN_S, SPARE_S = 0.3, 0.8
"""`TOKEN_S` is how many seconds of sound one token takes. If a window has over `SPARE_S` seconds
more sound than its tokens take together, some of the sound may be without words."""
LEAST_S = 0.2
"""A silence may divide two sentences only if there are at least this many seconds of sound on
either side of it."""
NEAR = 10
"""Maximum distance in steps between the end of a sentence and the moment at which the attention
moves on."""
RUN = 3
"""Missing words count as left out if there are at least this many in a row. Fewer count as
misheard."""

Span = tuple[float, float]
"""Begin and end in seconds."""


class WindowSound:
    """The parts of a window at 16 kHz that hold sound."""

    def __init__(self, pcm: Pcm) -> None:
        self.pcm = pcm
        """Samples of the window."""
        self._levels = levels(pcm, STEP)
        quieter = int(len(self._levels) * FLOOR_SHARE)
        floor = float(np.partition(self._levels, quieter)[quieter])
        loud = max(floor + ABOVE_FLOOR_DB, float(self._levels.max()) - BELOW_PEAK_DB)
        self._sounds: npt.NDArray[np.bool_] = self._levels > loud
        self._before = np.concatenate(([0], np.cumsum(self._sounds))) * STEP_S

    def spare(self, tokens: int) -> bool:
        """Return whether a decode that gave `tokens` tokens may have left sound without words."""
        return float(self._before[-1]) - TOKEN_S * tokens > SPARE_S

    def without_words(self, moments: Sequence[float]) -> tuple[float, Span]:
        """Find the token during which there is the most sound. Return the seconds of sound, and the
        span of the token.

        A span reaches from the beginning of one token to the beginning of the next. The first span
        begins with the window, and the last one ends with the window. `moments` are the times in
        seconds at which the tokens begin and the last one ends. If it is empty, the whole window is
        one span.
        """
        edges = (0.0, *moments[1:-1], len(self._levels) * STEP_S)
        return max((self._within(span), span) for span in pairwise(edges))

    def places(self, span: Span) -> list[int]:
        """Return up to three samples at which the window may be divided: in the longest silence
        within `span` that has sound on both sides, and at the quietest steps near the beginning and
        the end of `span`."""
        first, last = self._steps(span)
        loud = np.flatnonzero(self._sounds[first:last])
        lengths = np.diff(loud) - 1
        sound = np.arange(1, len(loud)) * STEP_S
        inside = np.minimum(sound, sound[::-1]) >= LEAST_S
        longest = int(np.argmax(np.where(inside, lengths, -1), axis=0)) if len(lengths) else 0
        middle = []
        if len(lengths) and inside[longest] and lengths[longest] > 0:
            middle = [first + int(loud[longest]) + 1 + int(lengths[longest]) // 2]
        found = dict.fromkeys((*middle, self._quietest(first), self._quietest(last)))
        return [at * STEP + STEP // 2 for at in found if NEAR < at < len(self._levels) - NEAR]

    def _quietest(self, step: int) -> int:
        """Return the index of the quietest step that is at most `NEAR` steps from `step`."""
        first = max(0, step - NEAR)
        return first + int(np.argmin(self._levels[first : step + NEAR + 1]))

    def _within(self, span: Span) -> float:
        first, last = self._steps(span)
        return float(self._before[last] - self._before[first])

    def _steps(self, span: Span) -> tuple[int, int]:
        first, last = (min(round(at / STEP_S), len(self._levels)) for at in span)
        return first, last


def gone(settled: Sequence[str], said: Sequence[str]) -> int:
    """Return how many of the `settled` words are missing in `said`. Where other words stand in the
    place of missing ones, their number is subtracted. Places where the difference is below `RUN` do
    not count."""
    before, after = (
        [key for word in words if (key := normalise(word))] for words in (settled, said)
    )
    compared = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    fewer = [(end - begin) - (last - first) for _, begin, end, first, last in compared]
    return sum(words for words in fewer if words >= RUN)


def fuller(settled: Sequence[str], first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether the `second` decode has words that the `first` left out. One or two more words
    may be noise."""
    return len(second) >= len(first) + RUN or gone(settled, second) < gone(settled, first)
