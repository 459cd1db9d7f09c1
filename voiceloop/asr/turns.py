"""Turn-taking: from (frame, speech probability) to where the user begins, pauses and goes on.

A state machine that counts samples. It has no clock and does no I/O, and it knows nothing of
recognition, replies or turn numbers. While the user is silent it reports how long that has lasted,
and whoever knows the words decides whether the turn is over: the dialogue core
(`dialogue/endpoint`), or for recordings `TurnDetector`.

    idle ── min_speech_ms voiced ──► speaking ── pause_ms unvoiced ──► paused ──── end() ───► idle
             SpeechStarted              ▲     │    or quiet               │ ▲   SilenceLasts
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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from voiceloop.asr.loudness import Loudness
from voiceloop.audio.frames import samples
from voiceloop.config import TurnConfig
from voiceloop.types import AudioFrame

LOOK_BACK_MS = 128
"""How far before the end of the last voiced window speech may have ended."""
LOOK_AHEAD_MS = 64
"""How far after the end of the last voiced window speech may have gone on."""
SETTLED_MS = 64
"""Silence, as the network sees it, after which the end of speech is looked for again."""


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
class SilenceLasts:
    """The user is still silent, and the turn may end here."""

    sample: int
    """Index of the sample after the last one seen."""
    speech_end: int
    """Index of the sample after the last voiced one."""
    quiet: bool = True
    """False where there is a sound by now that may be speech: the turn does not end before the
    next window tells."""

    def reaches(self, silence_ms: int) -> bool:
        """Whether there has been so much silence that a turn with this hangover is over."""
        return self.quiet and self.sample - self.speech_end >= samples(silence_ms)


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


TurnEvent = SpeechStarted | SpeechPaused | SilenceLasts | SpeechResumed | TurnEnded


class SpeechDetector:
    """The state of one stream at 16 kHz.

    Its events are to be gone through one by one, since `end` may be called between two of them.
    """

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
        self._loudness = Loudness()

    def feed(self, frame: AudioFrame, probability: float) -> Iterable[TurnEvent]:
        """What `frame`, the next one of the stream, tells by its speech probability."""
        config = self._config
        self._seen = frame.end
        self._voiced = probability >= (config.release if self._voiced else config.threshold)
        if not self._voiced and not self._active:
            self._run = None
            self._loudness.skip(frame)
            return
        self._loudness.take(frame, voiced=self._voiced)
        if not self._active:
            yield from self._first_windows(frame)
            return
        self._doubted = self._voiced and probability < config.pause_below
        if self._doubted and self._loudness.hushed():
            self._voiced_end = frame.end
            yield from self._pause()
        else:
            yield from self._voiced_window(frame) if self._voiced else self._unvoiced_window()
        if self._speech_end is not None and not self._voiced:
            yield SilenceLasts(frame.end, self._speech_end)
        if self._active and self._seen - self._start >= samples(1000 * config.max_turn_s):
            yield self._end(forced=True)

    def between(self, rest: AudioFrame) -> Iterable[TurnEvent]:
        """What `rest`, the beginning of the next window, tells by its loudness: it may begin a
        pause, or go on with a silence. It may be empty."""
        if not self._active:
            return
        if self._speech_end is None:
            if self._doubted and self._loudness.hushed(rest.pcm):
                yield from self._pause(rest.end)
        elif not self._voiced:
            if self._loudness.hushed(rest.pcm):
                self._seen = rest.end
                yield SilenceLasts(rest.end, self._speech_end)
            else:
                yield SilenceLasts(rest.end, self._speech_end, quiet=False)

    def end(self) -> TurnEnded:
        """The turn is over with the silence that was reported last."""
        return self._end()

    def flush(self) -> list[TurnEvent]:
        """The stream is over: so is a turn in progress."""
        return [self._end()] if self._active else []

    def forget(self) -> None:
        """There has been no turn, and none begins in what has been seen."""
        self._voiced = self._active = False
        self._run = None
        self._speech_end = None
        self._loudness.forget_peak()
        self._taken = self._seen

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
        self._loudness.forget_peak()
        return TurnEnded(self._seen, speech_end, forced)

    def _refined_end(self) -> int:
        """End of the last step around the last voiced window that is as loud as speech."""
        first = self._voiced_end - samples(LOOK_BACK_MS)
        last = self._voiced_end + samples(LOOK_AHEAD_MS)
        found = self._loudness.last_loud(self._seen, first, last)
        return self._voiced_end if found is None else found


class TurnDetector(SpeechDetector):
    """Ends turns by itself after the configured silence: for recordings, where nobody judges words
    meanwhile."""

    def feed(self, frame: AudioFrame, probability: float) -> list[TurnEvent]:
        """See `SpeechDetector.feed`; silences are not reported, but end the turn."""
        return [*self._ended(super().feed(frame, probability))]

    def between(self, rest: AudioFrame) -> list[TurnEvent]:
        """See `SpeechDetector.between`; silences are not reported, but end the turn."""
        return [*self._ended(super().between(rest))]

    def _ended(self, events: Iterable[TurnEvent]) -> Iterator[TurnEvent]:
        for event in events:
            if not isinstance(event, SilenceLasts):
                yield event
            elif event.reaches(self._config.hangover_ms):
                yield self.end()


class Commitment:
    """Stands in for a `SpeechDetector` where somebody else says when the user begins and ends.

    A turn begins with the first frame after the last one's end, and is whatever comes until `end`.
    """

    def __init__(self, config: TurnConfig) -> None:
        self._limit = samples(1000 * config.max_turn_s)
        self._start: int | None = None
        self._seen = 0

    def feed(self, frame: AudioFrame, probability: float) -> list[TurnEvent]:
        """A turn begins, and one of the greatest length is ended."""
        del probability
        self._seen = frame.end
        if self._start is None:
            self._start = frame.start
            return [SpeechStarted(frame.end, frame.start, frame.start)]
        return [self.end()] if self._seen - self._start >= self._limit else []

    def between(self, rest: AudioFrame) -> list[TurnEvent]:
        """Nothing is told by a part of a window."""
        del rest
        return []

    def end(self) -> TurnEnded:
        """The turn in progress is over; all of it is to be recognised."""
        self._start = None
        return TurnEnded(self._seen, self._seen, forced=True)

    def forget(self) -> None:
        """There has been no turn."""
        self._start = None


Detector = SpeechDetector | Commitment
"""Whatever finds the turns of a stream."""
