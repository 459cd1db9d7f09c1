"""Turn-taking: from (frame, speech probability) to the moments at which the user begins and ends.

A state machine that counts samples. It has no clock and does no I/O, and it knows nothing of
recognition, replies or turn numbers; whoever knows the transcript chooses the hangover, call by
call.

    idle ── min_speech_ms voiced ──► speaking ── pause_ms unvoiced ──► paused ── hangover ──► idle
             SpeechStarted              ▲     │    or quiet               │ ▲   TurnEnded
                                        │     └──────── SpeechPaused ─────┼─┘
                                        └────────────── SpeechResumed ────┘

A window is voiced when its probability reaches `threshold`, and stays so until one falls below
`release`. The network errs by up to three windows either way, so the end of speech is looked
for in the level of the audio around the last voiced window, in steps of four milliseconds. For the
same reason a pause begins as soon as a window is as quiet as the background and the network begins
to doubt; a turn never ends before the network says so as well. Once it has, the turn may end within
a window, where the part of it that is there is quiet.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voiceloop.audio.frames import SILENCE_DBFS, levels, samples
from voiceloop.config import TurnConfig
from voiceloop.types import AudioFrame, Pcm

STEP = 64
"""Samples over which a level is taken."""
LOOK_BACK_MS = 128
"""How far before the end of the last voiced window speech may have ended."""
LOOK_AHEAD_MS = 64
"""How far after the end of the last voiced window speech may have gone on."""
FLOOR_MS = 400
"""Recent audio in which the level of the background is found."""
FLOOR_SHARE = 0.1
"""Share of its levels that are no louder than what stands for the background."""
HUSH_MS = 24
"""Quiet of which a pause is guessed, where the network begins to doubt."""
SETTLED_MS = 64
"""Silence, as the network sees it, after which the end of speech is looked for again."""
ABOVE_FLOOR_DB = 5.0
BELOW_PEAK_DB = 40.0
"""Speech is louder than the background by the one and than its own peak less the other."""
PAUSE_BELOW_PEAK_DB = 10.0
"""How far a pause is below the peak: a sound that stays the same is no background."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The user has begun to speak."""

    sample: int
    """Index of the sample after the last one seen when this was decided."""
    start: int
    """First sample to recognise: the beginning less the pre-roll, never within an earlier turn."""
    speech_start: int
    """First sample of the first voiced window."""


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """The user has fallen silent; whether the turn is over is not known yet."""

    sample: int
    """Index of the sample after the last one seen when this was decided."""
    speech_end: int
    """Index of the sample after the last voiced one."""


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The user went on within the turn: what was guessed since SpeechPaused is void."""

    sample: int
    """Index of the sample after the last one seen when this was decided."""
    speech_start: int
    """First sample of the first voiced window."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The user's turn is over."""

    sample: int
    """Index of the sample after the last one seen when this was decided: the endpoint decision."""
    speech_end: int
    """Index of the sample after the last voiced one."""
    forced: bool = False
    """True where the turn reached its greatest length, with the user perhaps still speaking."""


TurnEvent = SpeechStarted | SpeechPaused | SpeechResumed | TurnEnded


class TurnDetector:
    """The state of one stream at 16 kHz."""

    def __init__(self, config: TurnConfig) -> None:
        self._config = config
        self._voiced = False
        self._active = False
        self._run: int | None = None
        """First sample of the voiced run that may become a beginning."""
        self._start = 0
        self._voiced_end = 0
        self._speech_end: int | None = None
        """Set while paused."""
        self._taken = 0
        """End of the last turn's audio: no later turn begins before it."""
        self._paused = 0
        """Where the silence after it was noticed."""
        self._doubted = False
        """The network takes the last window for speech, and is not sure of it."""
        self._seen = 0
        self._levels = np.zeros(0)
        """Of the newest steps, but for those of `_quiet`, which come after them."""
        self._quiet = deque[Pcm]()
        """Windows outside of any turn; most streams are silent most of the time, and the levels of
        a silence are wanted only where a turn follows."""
        self._peak = SILENCE_DBFS

    def feed(
        self, frame: AudioFrame, probability: float, hangover_ms: int | None = None
    ) -> list[TurnEvent]:
        """Events decided by `frame`, the next one of the stream, with its speech probability.

        `hangover_ms` is the silence that ends the turn as things stand now; none takes the
        configured one.
        """
        config = self._config
        self._seen = frame.end
        self._voiced = probability >= (config.release if self._voiced else config.threshold)
        if not self._voiced and not self._active:
            return self._quiet_window(frame)
        loudest = self._measure(frame)
        if self._voiced:
            self._peak = max(self._peak, loudest)
        if not self._active:
            return self._first_windows(frame)
        self._doubted = self._voiced and probability < config.pause_below
        if self._doubted and self._hushed(self._levels):
            self._voiced_end = frame.end
            events = self._pause()
        else:
            events = self._voiced_window(frame) if self._voiced else self._unvoiced_window()
        if self._speech_end is not None and not self._voiced:
            wait = samples(config.hangover_ms if hangover_ms is None else hangover_ms)
            if self._seen - self._speech_end >= wait:
                return [*events, self._end()]
        if self._seen - self._start >= samples(1000 * config.max_turn_s):
            return [*events, self._end(forced=True)]
        return events

    def between(self, rest: AudioFrame, hangover_ms: int | None = None) -> list[TurnEvent]:
        """What `rest`, the beginning of the next window, decides: its quiet may end the turn, or
        begin a pause. It may be empty, where only the hangover has changed.
        """
        if not self._active:
            return []
        if self._speech_end is None:
            begins = self._doubted and self._hushed_until(rest)
            return self._pause(rest.end) if begins else []
        wait = samples(self._config.hangover_ms if hangover_ms is None else hangover_ms)
        waited = not self._voiced and rest.end - self._speech_end >= wait
        if not waited or not self._hushed_until(rest):
            return []
        self._seen = rest.end
        return [self._end()]

    def flush(self) -> list[TurnEvent]:
        """The stream is over: so is a turn in progress."""
        return [self._end()] if self._active else []

    def forget(self) -> None:
        """There has been no turn, and none begins in what has been seen."""
        self._voiced = self._active = False
        self._run = None
        self._speech_end = None
        self._peak = SILENCE_DBFS
        self._taken = self._seen

    def _quiet_window(self, frame: AudioFrame) -> list[TurnEvent]:
        self._run = None
        self._peak = SILENCE_DBFS
        self._quiet.append(frame.pcm)
        if (len(self._quiet) - 1) * len(frame.pcm) >= samples(FLOOR_MS):
            self._quiet.popleft()
        return []

    def _measure(self, frame: AudioFrame) -> float:
        """Take down the levels of all that has come up to the end of `frame`; its loudest."""
        found = [levels(pcm, STEP) for pcm in (*self._quiet, frame.pcm)]
        self._quiet.clear()
        self._levels = np.concatenate((self._levels, *found))[-samples(FLOOR_MS) // STEP :]
        return float(found[-1].max(initial=SILENCE_DBFS))

    def _first_windows(self, frame: AudioFrame) -> list[TurnEvent]:
        if self._run is None:
            self._run = frame.start
        if frame.end - self._run < samples(self._config.min_speech_ms):
            return []
        self._active = True
        self._voiced_end = frame.end
        self._start = max(self._taken, self._run - samples(self._config.pre_roll_ms), 0)
        return [SpeechStarted(frame.end, self._start, self._run)]

    def _voiced_window(self, frame: AudioFrame) -> list[TurnEvent]:
        self._voiced_end = frame.end
        if self._speech_end is None:
            return []
        self._speech_end = None
        return [SpeechResumed(frame.end, frame.start)]

    def _unvoiced_window(self) -> list[TurnEvent]:
        unvoiced = self._seen - self._voiced_end
        if self._speech_end is None:
            return [] if unvoiced < samples(self._config.pause_ms) else self._pause()
        if samples(SETTLED_MS) <= unvoiced < 2 * samples(SETTLED_MS):
            # By now it is known what was background, and what the last consonant.
            self._speech_end = self._refined_end()
            if self._speech_end > self._paused:
                return self._pause()
        return []

    def _pause(self, seen: int | None = None) -> list[TurnEvent]:
        """A silence begins, or the one that there is has turned out to begin later."""
        if self._speech_end is None or self._speech_end > self._paused:
            self._speech_end, self._paused = self._refined_end(), seen or self._seen
            return [SpeechPaused(self._paused, self._speech_end)]
        return []

    def _end(self, *, forced: bool = False) -> TurnEnded:
        speech_end = self._refined_end() if self._speech_end is None else self._speech_end
        self._taken = self._seen if forced else speech_end
        self._active = False
        self._run = None
        self._speech_end = None
        self._peak = SILENCE_DBFS
        return TurnEnded(self._seen, speech_end, forced)

    def _refined_end(self) -> int:
        """End of the last step around the last voiced window that is as loud as speech."""
        begun = self._seen - len(self._levels) * STEP
        first = max(begun, self._voiced_end - samples(LOOK_BACK_MS))
        last = min(self._seen, self._voiced_end + samples(LOOK_AHEAD_MS))
        near = self._levels[(first - begun) // STEP : (last - begun) // STEP]
        loud = np.flatnonzero(near > self._speech_level)
        return first + (int(loud[-1]) + 1) * STEP if len(loud) else self._voiced_end

    def _hushed(self, heard: npt.NDArray[np.float64]) -> bool:
        """The last of these levels are those of a pause."""
        loudest = float(heard[-samples(HUSH_MS) // STEP :].max(initial=SILENCE_DBFS))
        return loudest <= min(self._speech_level, self._peak - PAUSE_BELOW_PEAK_DB)

    def _hushed_until(self, rest: AudioFrame) -> bool:
        """The last levels are those of a pause, where `rest` follows the last window."""
        later = levels(rest.pcm[: len(rest.pcm) // STEP * STEP], STEP)
        return self._hushed(np.concatenate((self._levels, later)))

    @property
    def _speech_level(self) -> float:
        """Decibels above which a step is as loud as speech."""
        quieter = int(len(self._levels) * FLOOR_SHARE)
        floor = float(np.partition(self._levels, quieter)[quieter])
        return max(floor + ABOVE_FLOOR_DB, self._peak - BELOW_PEAK_DB)


class Commitment:
    """Stands in for a `TurnDetector` where somebody else says when the user begins and ends.

    A turn begins with the first frame after the last one's end, and is whatever comes until
    `commit`.
    """

    def __init__(self, config: TurnConfig) -> None:
        self._limit = samples(1000 * config.max_turn_s)
        self._start: int | None = None
        self._seen = 0

    def feed(
        self, frame: AudioFrame, probability: float, hangover_ms: int | None = None
    ) -> list[TurnEvent]:
        """See `TurnDetector.feed`; a turn of the greatest length is ended."""
        del probability, hangover_ms
        self._seen = frame.end
        if self._start is None:
            self._start = frame.start
            return [SpeechStarted(frame.end, frame.start, frame.start)]
        return [self.commit()] if self._seen - self._start >= self._limit else []

    def between(self, rest: AudioFrame, hangover_ms: int | None = None) -> list[TurnEvent]:
        """See `TurnDetector.between`."""
        del rest, hangover_ms
        return []

    def commit(self) -> TurnEnded:
        """The turn in progress is over; all of it is to be recognised."""
        self._start = None
        return TurnEnded(self._seen, self._seen, forced=True)

    def forget(self) -> None:
        """There has been no turn."""
        self._start = None


Detector = TurnDetector | Commitment
"""Whatever finds the turns of a stream."""
