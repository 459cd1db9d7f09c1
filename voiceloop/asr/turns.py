"""The speech detector: finds by speech probabilities when the user begins, pauses, is silent and
goes on.

It is a state machine that counts samples. It has no clock and does no I/O, and it knows nothing of
recognition, replies or turn numbers. While the user is silent, it reports how long the silence
has lasted. In a conversation the dialogue core decides whether the turn is over, because it knows
the words (`dialogue/endpoint`). Elsewhere the detector ends the turn itself after `hangover_ms`.

    idle ── min_speech_ms voiced ──► speaking ── pause_ms unvoiced ──► paused ──── end() ───► idle
             SpeechStarted              ▲     │    or quiet               │ ▲   SilenceLasts
                                        │     └──────── SpeechPaused ─────┼─┘
                                        └────────────── SpeechResumed ────┘

Names such as `min_speech_ms` are settings of `config.TurnConfig`. A window is voiced if its speech
probability reaches `threshold`. The windows after it are voiced too, until the probability falls
below `release`. The voice activity detection may be three windows early or late. So the end of
speech is searched in the audio levels around the last voiced window, in steps of four milliseconds.
And a pause also begins at a voiced window that is quiet like the background, if its probability is
below `pause_below`. A turn does not end before a window is unvoiced. After that it may end within a
window, if the part that has arrived is quiet.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from voiceloop.audio.frames import SILENCE_DBFS, levels, samples
from voiceloop.settings.config import TurnConfig
from voiceloop.types import AudioFrame, Pcm

STEP = 64
"""Samples in a step; each step has one level."""
FLOOR_MS = 400
"""Milliseconds of recent audio from which the background level is estimated."""
FLOOR_SHARE = 0.1
"""Quantile of the recent levels that is taken as the background level."""
HUSH_MS = 24
"""Milliseconds of quiet that count as the beginning of a pause."""
ABOVE_FLOOR_DB = 5.0
BELOW_PEAK_DB = 40.0
"""Limits in decibels. Speech is louder than the background plus `ABOVE_FLOOR_DB`, and louder than
its own peak minus `BELOW_PEAK_DB`."""
PAUSE_BELOW_PEAK_DB = 10.0
"""A pause is at least this many decibels softer than the peak of the speech. Without this limit, a
constant sound would count as background, and so as a pause."""


class Loudness:
    """The recent levels of one stream at 16 kHz."""

    def __init__(self) -> None:
        self._levels = np.zeros(0)
        """Levels in dBFS of the newest steps."""
        self._peak = SILENCE_DBFS
        """Highest level in dBFS of the present speech."""

    def take(self, frame: AudioFrame, *, voiced: bool) -> None:
        """Take the next window. Only `voiced` windows raise the peak."""
        found = levels(frame.pcm, STEP)
        self._levels = np.concatenate((self._levels, found))[-samples(FLOOR_MS) // STEP :]
        if voiced:
            self._peak = max(self._peak, float(found.max(initial=SILENCE_DBFS)))

    def forget_peak(self) -> None:
        """Forget the peak of the speech, because other speech follows."""
        self._peak = SILENCE_DBFS

    def hushed(self, rest: Pcm | None = None) -> bool:
        """Return whether the last `HUSH_MS` are as quiet as a pause. `rest` is audio that has
        arrived after the last window."""
        heard: npt.NDArray[np.float64] = self._levels
        if rest is not None:
            heard = np.concatenate((heard, levels(rest[: len(rest) // STEP * STEP], STEP)))
        loudest = float(heard[-samples(HUSH_MS) // STEP :].max(initial=SILENCE_DBFS))
        return loudest <= min(self._speech_level, self._peak - PAUSE_BELOW_PEAK_DB)

    def last_loud(self, seen: int, first: int, last: int) -> int | None:
        """Find the last step between samples `first` and `last` that is loud enough for speech.
        Return the index of the sample after it, or None if there is no loud step. `seen` is the
        index of the first sample that has not been taken yet."""
        begun = seen - len(self._levels) * STEP
        first, last = max(begun, first), min(seen, last)
        near = self._levels[(first - begun) // STEP : (last - begun) // STEP]
        loud = np.flatnonzero(near > self._speech_level)
        return first + (int(loud[-1]) + 1) * STEP if len(loud) else None

    @property
    def _speech_level(self) -> float:
        """The level in decibels above which a step is as loud as speech."""
        quieter = int(len(self._levels) * FLOOR_SHARE)
        floor = float(np.partition(self._levels, quieter)[quieter])
        return max(floor + ABOVE_FLOOR_DB, self._peak - BELOW_PEAK_DB)


LOOK_BACK_MS = 128
"""The end of speech is searched from this many milliseconds before the end of the last voiced
window."""
LOOK_AHEAD_MS = 64
"""The end of speech is searched until this many milliseconds after the end of the last voiced
window."""
SETTLED_MS = 64
"""Milliseconds of unvoiced windows after which the end of speech is searched again."""


class SpeechStarted(Struct, frozen=True, tag=True):
    """The user has begun to speak."""

    sample: int
    """Index of the first sample that the detector had not seen when this was decided."""
    start: int
    """Index of the first sample to recognise. It precedes the speech by the pre-roll, but never
    lies within an earlier turn."""
    speech_start: int
    """Index of the first sample of the first voiced window."""


class SpeechPaused(Struct, frozen=True, tag=True):
    """The user has fallen silent; whether the turn is over is not known yet."""

    sample: int
    """Index of the first sample that the detector had not seen when this was decided."""
    speech_end: int
    """Index of the sample after the last voiced one."""


class SilenceLasts(Struct, frozen=True, tag=True):
    """The user is still silent, and the turn may end here."""

    sample: int
    """Index of the first sample that the detector has not seen yet."""
    speech_end: int
    """Index of the sample after the last voiced one."""
    quiet: bool = True
    """False if a sound has begun that may be speech. Then the turn cannot end before the next
    window is judged."""

    def reaches(self, silence_ms: int) -> bool:
        """Return whether the turn may end if its hangover is `silence_ms`: the silence has lasted
        that long, and `quiet` is true."""
        return self.quiet and self.sample - self.speech_end >= samples(silence_ms)


class SpeechResumed(Struct, frozen=True, tag=True):
    """The user goes on within the turn. All guesses since `SpeechPaused` are void."""

    sample: int
    """Index of the first sample that the detector had not seen when this was decided."""
    speech_start: int
    """Index of the first sample of the first voiced window."""


class TurnEnded(Struct, frozen=True, tag=True):
    """The user's turn is over."""

    sample: int
    """The endpoint: index of the first sample that the detector had not seen when this was
    decided."""
    speech_end: int
    """Index of the sample after the last voiced one."""
    forced: bool = False
    """True if the turn ended without a silence: it reached its maximum length, or a client ended
    it."""


TurnEvent = SpeechStarted | SpeechPaused | SilenceLasts | SpeechResumed | TurnEnded


class SpeechDetector:
    """The speech detector of one stream at 16 kHz.

    Its events must be handled one by one, since `end` may be called between two of them.
    """

    def __init__(self, config: TurnConfig, *, ends: bool = False) -> None:
        """Find speech by the settings of `config`. With `ends`, a turn ends after a silence of
        `hangover_ms`, and silences are not reported."""
        self._config = config
        self._ends = ends
        self._voiced = False
        self._start: int | None = None
        """First sample of the present turn; None outside of a turn."""
        self._run: int | None = None
        """First sample of a voiced run that may become the beginning of a turn."""
        self._voiced_end = 0
        self._speech_end: int | None = None
        """End of the speech before the present pause, in samples; None outside a pause."""
        self._taken = 0
        """End of the last turn's audio: no later turn begins before it."""
        self._paused = 0
        """Sample at which the present pause was reported."""
        self._doubted = False
        """Whether the last window is voiced with a probability below `pause_below`."""
        self._seen = 0
        self._loudness = Loudness()

    def feed(self, frame: AudioFrame, probability: float) -> Iterable[TurnEvent]:
        """Yield the events of `frame`, the next window of the stream. `probability` is the
        probability that it is speech."""
        config = self._config
        self._seen = frame.end
        self._voiced = probability >= (config.release if self._voiced else config.threshold)
        self._loudness.take(frame, voiced=self._voiced)
        if not self._voiced and self._start is None:
            self._run = None
            self._loudness.forget_peak()
            return
        if self._start is None:
            yield from self._first_windows(frame)
            return
        self._doubted = self._voiced and probability < config.pause_below
        if self._doubted and self._loudness.hushed():
            self._voiced_end = frame.end
            yield from self._pause()
        else:
            yield from self._voiced_window(frame) if self._voiced else self._unvoiced_window()
        if self._speech_end is not None and not self._voiced:
            yield from self._silence(SilenceLasts(frame.end, self._speech_end))
        yield from self._limited()

    def between(self, rest: AudioFrame) -> Iterable[TurnEvent]:
        """Yield the events of `rest`, the part of the next window that has arrived; it may be
        empty. No probability is known for it, but its loudness may show that a pause begins or that
        a silence goes on."""
        if self._start is None:
            return
        if self._speech_end is None:
            if self._doubted and self._loudness.hushed(rest.pcm):
                yield from self._pause(rest.end)
        elif not self._voiced:
            quiet = self._loudness.hushed(rest.pcm)
            if quiet:
                self._seen = rest.end
            yield from self._silence(SilenceLasts(rest.end, self._speech_end, quiet))

    def end(self) -> TurnEnded:
        """End the turn at the silence that was reported last, and return the event."""
        return self._end()

    def flush(self) -> list[TurnEvent]:
        """End a turn that is in progress, because the stream is over."""
        return [] if self._start is None else [self._end()]

    def forget(self) -> None:
        """Discard the present turn. No later turn begins in the audio so far."""
        self._voiced = False
        self._leave(self._seen)

    def _silence(self, lasts: SilenceLasts) -> list[TurnEvent]:
        """Report a silence, or end the turn if the detector does that itself."""
        if not self._ends:
            return [lasts]
        return [self._end()] if lasts.reaches(self._config.hangover_ms) else []

    def _limited(self) -> list[TurnEvent]:
        """End the turn if it has reached the maximum length."""
        if self._start is None or self._seen - self._start < samples(
            1000 * self._config.max_turn_s
        ):
            return []
        return [self._end(forced=True)]

    def _first_windows(self, frame: AudioFrame) -> list[TurnEvent]:
        if self._run is None:
            self._run = frame.start
        if frame.end - self._run < samples(self._config.min_speech_ms):
            return []
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
            # By now the last consonant can be told from the background.
            self._speech_end = self._refined_end()
            if self._speech_end > self._paused:
                return self._pause()
        return []

    def _pause(self, seen: int | None = None) -> list[TurnEvent]:
        """Return a `SpeechPaused` if a pause begins, decided at sample `seen` (None: at the newest
        sample). The present pause is reported again if it turns out that the speech ended only
        after the first report."""
        if self._speech_end is None or self._speech_end > self._paused:
            self._speech_end, self._paused = self._refined_end(), seen or self._seen
            return [SpeechPaused(self._paused, self._speech_end)]
        return []

    def _end(self, *, forced: bool = False) -> TurnEnded:
        speech_end = self._refined_end() if self._speech_end is None else self._speech_end
        self._leave(self._seen if forced else speech_end)
        return TurnEnded(self._seen, speech_end, forced)

    def _leave(self, taken: int) -> None:
        """Leave the present turn. No later turn begins before sample `taken`."""
        self._start = self._run = self._speech_end = None
        self._taken = taken
        self._loudness.forget_peak()

    def _refined_end(self) -> int:
        """Return the sample at which the speech ended. Around the end of the last voiced window,
        this is the end of the last loud step, or of the window if no step is loud."""
        first = self._voiced_end - samples(LOOK_BACK_MS)
        last = self._voiced_end + samples(LOOK_AHEAD_MS)
        found = self._loudness.last_loud(self._seen, first, last)
        return self._voiced_end if found is None else found


class ManualTurnDetector:
    """A detector for a user or client who says when a turn begins and ends.

    A turn begins with the first frame after the end of the last turn, or after `talking` was set.
    It has all audio until `end`.
    """

    def __init__(self, config: TurnConfig, *, talking: bool = True) -> None:
        self.talking = talking
        """Whether the user talks. No turn begins while it is false."""
        self._limit = samples(1000 * config.max_turn_s)
        self._start: int | None = None
        self._seen = 0

    def feed(self, frame: AudioFrame, probability: float) -> list[TurnEvent]:
        """While the user talks, begin a turn if there is none, and end a turn that has reached the
        maximum length."""
        del probability
        self._seen = frame.end
        if not self.talking:
            return []
        if self._start is None:
            self._start = frame.start
            return [SpeechStarted(frame.end, frame.start, frame.start)]
        return [self.end()] if self._seen - self._start >= self._limit else []

    def between(self, rest: AudioFrame) -> list[TurnEvent]:
        """Return no events: a part of a window decides nothing here."""
        del rest
        return []

    def end(self) -> TurnEnded:
        """End the present turn, and return the event. All of its audio is to be recognised."""
        self._start = None
        return TurnEnded(self._seen, self._seen, forced=True)

    def forget(self) -> None:
        """Discard the present turn."""
        self._start = None


Detector = SpeechDetector | ManualTurnDetector
"""Any class that finds the turns of a stream."""
