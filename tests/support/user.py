"""The scripted user: the audio at their microphone, and its time.

Each word of a `Lexicon` sounds at a constant level that no other word has. So the words and their
places can be read from the samples alone. All waiting goes through anyio. This module knows neither
engines nor the session. It only receives the session's events.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import anyio
import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.types import AudioFrame, Clause, Event, Pcm, TokenBurst, Transcript, TurnTrace, Word

FRAME = samples(20)
"""Samples of a frame: 20 ms, twice as many as from a live microphone. So a long conversation has
fewer frames to simulate."""
LEVEL, STEP = 0.25, 2.0**-20
"""Word k (from 1 on) has the amplitude `LEVEL + k * STEP`, which is exact in float32. Other sounds
have the amplitude `LEVEL`."""
ENOUGH = 0.9
"""Share of a word that a window must contain for the word to be recognised."""
SETTLED = samples(50)
"""If a window of audio ends with this many samples of silence, no word in it is misheard."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of audio at the user's microphone."""

    text: str | None
    """A word; empty for another sound, such as a cough; None for silence."""
    seconds: float
    misheard: str | None = None
    """Word that partial decodes return in place of `text` while the voice goes on. If it is empty,
    they leave the word out. If it is None, they return `text`."""


class Lexicon:
    """The words that the user has spoken. It turns words into audio, each at its own level, and
    reads them from audio again."""

    def __init__(self) -> None:
        self._words: list[Piece] = []

    def sound(self, piece: Piece) -> Pcm:
        """Return the audio of `piece`. Each call with a word adds a new word."""
        count = round(piece.seconds * SPEECH_RATE)
        if piece.text is None:
            return silence(count)
        if not piece.text:
            return np.full(count, LEVEL, np.float32)
        self._words.append(piece)
        return np.full(count, LEVEL + len(self._words) * STEP, np.float32)

    def read(self, pcm: Pcm, *, final: bool) -> list[Word]:
        """Return the words in `pcm`, with times in seconds from its first sample. A word counts if
        `pcm` contains at least the share `ENOUGH` of it.

        A partial decode (`final` False) mishears words while the voice still sounds at the end of
        `pcm`.
        """
        if not len(pcm):
            return []
        settled = final or not pcm[-SETTLED:].any()
        edges = [0, *(np.flatnonzero(pcm[1:] != pcm[:-1]) + 1).tolist(), len(pcm)]
        words: list[Word] = []
        for start, end in pairwise(edges):
            number = round((float(pcm[start]) - LEVEL) / STEP)
            if number < 1:
                continue
            word = self._words[number - 1]
            if end - start >= ENOUGH * word.seconds * SPEECH_RATE:
                text = word.text if settled or word.misheard is None else word.misheard
                if text:
                    words.append(Word(text, start / SPEECH_RATE, end / SPEECH_RATE))
        return words


After = Literal["speech", "sound", "reply"]
ALL = 0
"""Number that `Watch` uses in place of a turn's number: in the moment when any turn sounds, and in
the moment when all turns are over."""


@dataclass(frozen=True, slots=True)
class TimedSound:
    """A sound of the user, with its time."""

    pieces: tuple[Piece, ...]
    what: str
    """Description of the sound in messages."""
    at: float | None = None
    """When the sound begins, in seconds of the stream (`StreamClock`); None: `after` decides."""
    after: After = "speech"
    """Event that the sound follows. `speech`: the end of the previous sound; `sound`: the first
    sound of a reply; `reply`: the end of `turn`, or of all turns."""
    delay_s: float = 0.0
    """Seconds from the event to the sound, in time of the stream if the event is `speech`, else in
    time of the event loop."""
    turn: int | None = None
    """Turn whose `sound` or `reply` is waited for. If it is None, the user waits until any turn
    sounds, or until all turns are over. Only what comes after the user's previous sound counts."""


class StreamClock:
    """The clock of a microphone's stream. It stops while the microphone is held."""

    def __init__(self, wait: Callable[[float], Awaitable[None]]) -> None:
        """`wait` waits until a given time."""
        self._wait = wait
        self._origin = 0.0
        """Time at which sample 0 was recorded, plus all the time for which the microphone was held
        since then."""
        self._held_at: float | None = None
        self._changed = anyio.Event()

    def start(self, now: float) -> None:
        """Set the time of sample 0 to `now`."""
        self._origin = now

    def hold(self, now: float) -> None:
        """Stop the clock."""
        if self._held_at is None:
            self._held_at = now

    def release(self, now: float) -> bool:
        """Let the clock go on. Return False if it was not stopped."""
        if self._held_at is None:
            return False
        self._origin += now - self._held_at
        self._held_at = None
        self._changed.set()
        self._changed = anyio.Event()
        return True

    def when(self, sample: int) -> float:
        """Return the time at which `sample` is recorded."""
        return self._origin + sample / SPEECH_RATE

    def seconds(self, moment: float) -> float:
        """Convert `moment`, a time of the event loop, to seconds of the stream."""
        return moment - self._origin

    async def recorded(self, end: int) -> None:
        """Wait until the samples before `end` are recorded."""
        while True:
            if self._held_at is not None:
                await self._changed.wait()
            due = self.when(end)
            await self._wait(due)
            if self._held_at is None and self.when(end) == due:
                return


class Watch:
    """Record of the conversation's moments that a sound of the user may follow."""

    def __init__(self) -> None:
        self.active_at = 0.0
        """Time of the last event, or of the microphone's last start or release."""
        self._moments: list[tuple[str, int, float]] = []
        """Past events as tuples (kind, number, time). The kind is `sound` when a clause begins to
        sound, and `reply` when a turn or the last of all turns is over. The number is the turn's
        number or `ALL`."""
        self._live: set[int] = set()
        """Turns that have shown something and are not over."""

    def notice(self, event: Event, now: float) -> None:
        """Record an event of the session."""
        self.active_at = now
        match event:
            case TurnTrace():
                self._live.discard(event.turn)
                self._moments.append(("reply", event.turn, now))
                if not self._live:
                    self._moments.append(("reply", ALL, now))
            case Clause():
                self._moments += [("sound", event.turn, now), ("sound", ALL, now)]
            case Transcript() | TokenBurst():
                self._live.add(event.turn)

    def moment(self, say: TimedSound, since: float) -> float | None:
        """Return the time of the first event that `say` waits for; None if there was none yet. If
        `say` names no turn, only events from the time `since` on count."""
        first: float | None = None
        for what, turn, at in reversed(self._moments):
            if say.turn is None and at < since:
                break
            if (what, turn) == (say.after, say.turn or ALL):
                first = at
        return first


class ScriptedMicrophone:
    """A microphone that hears each sound of the user at its time, and silence otherwise.

    While it is held, the stream's clock stops and no frame comes. If the event that a sound follows
    does not happen for `patience_s`, the stream ends and `problem` names that sound.
    """

    def __init__(
        self,
        says: Sequence[TimedSound],
        lexicon: Lexicon,
        wait: Callable[[float], Awaitable[None]],
        *,
        silence_s: float,
        patience_s: float,
    ) -> None:
        """`wait` waits until a given time. `silence_s` of silence follow the last sound."""
        self.finished = False
        self.problem = ""
        self.begun: list[tuple[float, TimedSound]] = []
        """Sounds so far, each with the time at which it began."""
        self._clock = StreamClock(wait)
        self._watch = Watch()
        self._waiting = deque(says)
        self._lexicon = lexicon
        self._silence = round(silence_s * SPEECH_RATE)
        self._patience_s = patience_s
        self._rest = silence(0)
        """Samples of the present sound that are still to come."""
        self._spoken = 0
        """Index of the stream's sample at which the last sound ended. During a sound it is the end
        of the part that has been recorded."""
        self._spoken_at = 0.0
        """Time of sample `_spoken`."""

    def notice(self, event: Event) -> None:
        """Record an event of the session, which a sound may follow."""
        self._watch.notice(event, anyio.current_time())

    def hold(self) -> None:
        """Stop the stream's clock."""
        self._clock.hold(anyio.current_time())

    def release(self) -> None:
        """Let the stream's clock go on."""
        now = anyio.current_time()
        if self._clock.release(now):
            self._watch.active_at = now

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield frames of 20 ms at 16 kHz, each when its last sample is recorded."""
        self._watch.active_at = now = anyio.current_time()
        self._clock.start(now)
        start = 0
        while True:
            await self._clock.recorded(start + FRAME)
            pcm = self._hear(start)
            start += FRAME
            self._look_ahead(start)
            yield AudioFrame(pcm, SPEECH_RATE, start - FRAME)

    def _hear(self, start: int) -> Pcm:
        """Return the frame that begins with sample `start`."""
        pcm, at = silence(FRAME), start
        while at < start + FRAME:
            if not len(self._rest):
                begin = self._next_begin(at)
                if begin is None or begin >= start + FRAME:
                    break
                at = begin
                say = self._waiting.popleft()
                self.begun.append((self._clock.when(at), say))
                sounds = [self._lexicon.sound(piece) for piece in say.pieces]
                self._rest = np.concatenate([silence(0), *sounds])
            count = min(len(self._rest), start + FRAME - at)
            pcm[at - start : at - start + count] = self._rest[:count]
            self._rest = self._rest[count:]
            at = self._spoken = at + count
            self._spoken_at = self._clock.when(at)
        return pcm

    def _next_begin(self, earliest: int) -> int | None:
        """Return the sample, from `earliest` on, at which the next sound begins; None if
        unknown."""
        if not self._waiting:
            return None
        say = self._waiting[0]
        if say.at is not None:
            begin = say.at
        elif say.after == "speech":
            begin = self._spoken / SPEECH_RATE + say.delay_s
        elif (moment := self._watch.moment(say, self._spoken_at)) is not None:
            begin = self._clock.seconds(moment + say.delay_s)
        else:
            return None
        return max(earliest, math.ceil(begin * SPEECH_RATE - 1e-6))

    def _look_ahead(self, end: int) -> None:
        """Set `finished` if no sound is left, and the silence after the last one is over at sample
        `end`. If the next sound has waited too long for its event, set `problem` and give up all
        sounds that are left."""
        if not self._waiting:
            self.finished = not len(self._rest) and end >= self._spoken + self._silence
            return
        quiet = self._clock.when(end) - max(self._watch.active_at, self._spoken_at)
        if quiet > self._patience_s and self._next_begin(end) is None:
            say = self._waiting[0]
            whose = f" of turn {say.turn}" if say.turn else ""
            what = "the end" if say.after == "reply" else "a sound"
            self.problem = f"{say.what} waits for {what}{whose}, which never comes"
            self._waiting.clear()
