"""The scripted user: what their microphone hears, and when.

The audio carries its own transcript: each word of a `Lexicon` sounds at a constant level of its
own, so whoever holds the lexicon reads words, and where they lie, from the samples alone. All
waiting goes through anyio. This module knows neither engines nor the session, whose events alone it
is told.
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
"""Twice as long as a live microphone's: long conversations are heard in seconds."""
LEVEL, STEP = 0.25, 2.0**-20
"""Word k sounds at `LEVEL + k * STEP`, which is exact in float32; what is no word, at `LEVEL`."""
ENOUGH = 0.9
"""Part of a word that a window must hold for the word to be recognised."""
SETTLED = samples(50)
"""Silence at the end of a window after which nothing in it is misheard."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of what the user's microphone hears."""

    text: str | None
    """A word; empty for a sound that is none, such as a cough; None for silence."""
    seconds: float
    misheard: str | None = None
    """What partial decodes take the word for while the voice goes on; empty: they miss it."""


class Lexicon:
    """Every word that has been said, by its level: speaks them, and reads them back."""

    def __init__(self) -> None:
        self._words: list[Piece] = []

    def sound(self, piece: Piece) -> Pcm:
        """The piece as it sounds; each word is a new one."""
        count = round(piece.seconds * SPEECH_RATE)
        if piece.text is None:
            return silence(count)
        if not piece.text:
            return np.full(count, LEVEL, np.float32)
        self._words.append(piece)
        return np.full(count, LEVEL + len(self._words) * STEP, np.float32)

    def read(self, pcm: Pcm, *, final: bool) -> list[Word]:
        """The words of which `pcm` holds enough, timed from its first sample.

        A partial decode mishears as long as the voice sounds at its end.
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
"""Stands for the turns together."""


@dataclass(frozen=True, slots=True)
class TimedSound:
    """A sound that the user makes, and when."""

    pieces: tuple[Piece, ...]
    what: str
    """How it is told."""
    at: float | None = None
    """Seconds of the stream, whose clock stands still while the microphone is held; none: see
    `after`."""
    after: After = "speech"
    """What it follows: the end of the sound before it, the first sound of a reply, or the moment
    when nothing is left to be said in reply."""
    delay_s: float = 0.0
    """By how much it follows that: seconds of the stream after speech, of the loop's clock else."""
    turn: int | None = None
    """Whose reply or end is meant; none: the first since the sound before it was over."""


class StreamClock:
    """When each sample of a microphone's stream is recorded; it stands still while it is held."""

    def __init__(self, wait: Callable[[float], Awaitable[None]]) -> None:
        """`wait` waits for a moment."""
        self._wait = wait
        self._origin = 0.0
        """When sample 0 was recorded, were the time left out in which the microphone was held."""
        self._held_at: float | None = None
        self._changed = anyio.Event()

    def start(self, now: float) -> None:
        """Sample 0 is recorded `now`."""
        self._origin = now

    def hold(self, now: float) -> None:
        """Stop."""
        if self._held_at is None:
            self._held_at = now

    def release(self, now: float) -> bool:
        """Go on; False where it was not held."""
        if self._held_at is None:
            return False
        self._origin += now - self._held_at
        self._held_at = None
        self._changed.set()
        self._changed = anyio.Event()
        return True

    def when(self, sample: int) -> float:
        """The moment of a sample."""
        return self._origin + sample / SPEECH_RATE

    def seconds(self, moment: float) -> float:
        """Where in the stream a moment is."""
        return moment - self._origin

    async def recorded(self, end: int) -> None:
        """Wait for the moment of sample `end`."""
        while True:
            if self._held_at is not None:
                await self._changed.wait()
            due = self.when(end)
            await self._wait(due)
            if self._held_at is None and self.when(end) == due:
                return


class Watch:
    """What the user has noticed of the conversation, as far as sounds of theirs follow it."""

    def __init__(self) -> None:
        self.active_at = 0.0
        """When something happened last."""
        self._moments: list[tuple[str, int, float]] = []
        """When each turn's reply first sounded and when the turn was over, in order."""
        self._live: set[int] = set()
        """Turns of which something has been shown that are not over."""

    def notice(self, event: Event, now: float) -> None:
        """Take in what the session shows."""
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
        """When what `say` follows happened for the first time; of no turn in particular: `since`
        that moment."""
        first: float | None = None
        for what, turn, at in reversed(self._moments):
            if say.turn is None and at < since:
                break
            if (what, turn) == (say.after, say.turn or ALL):
                first = at
        return first


class ScriptedMicrophone:
    """Hears each sound of the user when its time has come, and silence otherwise.

    While it is held the stream's clock stops and no frame comes. A sound that follows something
    that does not happen for `patience_s` ends the stream, and `problem` tells which.
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
        """`wait` waits for a moment; `silence_s` follow the last sound."""
        self.finished = False
        self.problem = ""
        self.begun: list[tuple[float, TimedSound]] = []
        """What has been said so far, each with the time at which it began."""
        self._clock = StreamClock(wait)
        self._watch = Watch()
        self._waiting = deque(says)
        self._lexicon = lexicon
        self._silence = round(silence_s * SPEECH_RATE)
        self._patience_s = patience_s
        self._rest = silence(0)
        """What is left of the present sound."""
        self._spoken = 0
        """Sample of the stream at which the last sound was over."""
        self._spoken_at = 0.0
        """When that was."""

    def notice(self, event: Event) -> None:
        """Take in what the session shows: some sounds follow it."""
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
        """Frames of 20 ms at 16 kHz for as long as anyone listens, each as its last sample ends."""
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
        """The frame that begins with sample `start`."""
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
        """The sample at which the next sound begins, not before `earliest`; none where unknown."""
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
        """After the frame that ends with sample `end`: is anything left to be said?"""
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
