"""The bookkeeping of a reply that is being played: which samples, words and tokens have been heard.

A `Playback` is the queue of one reply between its synthesis and a speaker. It counts samples and
knows no device, no clock and no event loop. `player.Player` moves blocks from here to a speaker,
and says how many samples the speaker gave back unplayed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from voiceloop.audio.frames import Resampler, SampleBuffer, fade_in, samples
from voiceloop.types import Clause, Pcm, SpeechChunk

AUDIBLE = 10 ** (-50 / 20)
"""Amplitude from which a sample counts as audible: 50 dB below full scale."""
KEPT_S = 2
"""Seconds of audio that stay here after they were handed out, because `rewind` may take them back.
The server sends audio 0.2 s ahead, and its client may play it a second after that."""
FADE_MS = 5
"""Milliseconds of the fade where sound is cut off or taken up again."""


@dataclass(frozen=True, slots=True)
class Heard:
    """How much of a reply has been heard."""

    turn: int
    words: tuple[str, ...] = ()
    """Words heard to their end, as spoken."""
    tokens: int = 0
    """Number of the reply's tokens up to the end of the last word in `words`."""
    samples: int = 0
    """Samples played, at the speaker's rate."""
    complete: bool = False
    """True once a finished reply has been played to its last sample."""


@dataclass(frozen=True, slots=True)
class AudioBlock:
    """The next samples for the speaker."""

    pcm: Pcm
    start: int
    """Index of the first sample in the reply."""
    clauses: tuple[Clause, ...] = ()
    """Clauses whose sound begins in this block; each clause is listed in one block only."""
    audible: int | None = None
    """Index in `pcm` of the reply's first audible sample, if it is in this block."""


@dataclass(frozen=True, slots=True)
class _PlayedWord:
    end: int
    text: str
    tokens: int


class _Sound:
    """The audio of a reply so far, at the speaker's rate, with its words and clauses."""

    def __init__(self, rate: int) -> None:
        self.pcm = SampleBuffer()
        self.words: list[_PlayedWord] = []
        self.clauses: list[tuple[int, Clause]] = []
        """Clauses, each with the sample at which it begins."""
        self._rate = rate
        self._clause: int | None = None
        """Index of the clause that is being pushed."""
        self._resampler: Resampler | None = None

    def push(self, chunk: SpeechChunk) -> None:
        """Add the next chunk.

        Each clause is resampled as one stream, so the borders of its chunks make no difference.
        """
        if chunk.clause.index != self._clause:
            self.end_clause()
            self._clause = chunk.clause.index
            self._resampler = Resampler(chunk.rate, self._rate)
            self.clauses.append((self.pcm.end, chunk.clause))
        begin, resampler = self.clauses[-1][0], self._resampler
        assert resampler is not None
        self.pcm.append(resampler.feed(chunk.pcm))
        for word in chunk.words:
            span = chunk.clause.spans[word.span]
            end = begin + math.ceil(word.end * self._rate / chunk.rate)
            text = chunk.clause.spoken[span.start : span.end]
            self.words.append(_PlayedWord(end, text, span.tokens))
        if chunk.last:
            self.end_clause()

    def end_clause(self) -> None:
        """End the present clause: no more chunks of it come."""
        if self._resampler is None:
            return
        self.pcm.append(self._resampler.flush())
        self._resampler = self._clause = None
        # Rounding must not put the end of the last word behind the end of its clause.
        end = self.pcm.end
        self.words = [
            _PlayedWord(min(word.end, end), word.text, word.tokens) for word in self.words
        ]


class Playback:
    """The queue of one reply, and the position up to which it has been handed out.

    Nothing comes out before `open` is set. Changes act at the present position. `rewind` takes back
    samples that the speaker was handed but did not play.
    """

    def __init__(self, turn: int, rate: int, *, lead: int = 0) -> None:
        """Queue the reply to `turn`. Nothing comes out before `lead` samples or the whole reply are
        queued."""
        self.turn = turn
        self.rate = rate
        """Sample rate of the speaker, in hertz."""
        self.lead = lead
        """Samples that have to be queued before the first one is handed out."""
        self.position = 0
        """Number of samples handed out."""
        self.open = False
        """Whether the reply may sound."""
        self.paused = False
        """Whether nothing is handed out until `resume`."""
        self.stopped = False
        """Whether nothing is handed out any more."""
        self.finished = False
        """Whether the whole reply has been queued."""
        self.first_audible: int | None = None
        """Index of the first audible sample; None until it has been handed out."""
        self._rising = False
        self._announced = 0
        """Number of clauses that blocks have listed."""
        self._sound = _Sound(rate)

    @property
    def end(self) -> int:
        """Number of samples of the reply so far."""
        return self._sound.pcm.end

    @property
    def queued(self) -> int:
        """Number of samples that wait to be handed out."""
        return self.end - self.position

    @property
    def exhausted(self) -> bool:
        """Whether the whole reply has been queued and handed out."""
        return self.finished and not self.queued

    def push(self, chunk: SpeechChunk) -> None:
        """Queue the next chunk of the reply, at any sample rate. A stopped reply takes no more."""
        if not self.stopped:
            self._sound.push(chunk)

    def finish(self) -> None:
        """Note that the whole reply has been queued."""
        self._sound.end_clause()
        self.finished = True

    def resume(self) -> None:
        """Go on at the next sample, and fade in if something has sounded before."""
        self._rising = self._rising or (self.paused and self.position > 0)
        self.paused = False

    def rewind(self, count: int) -> None:
        """Take back the last `count` samples, which the speaker was handed and will not play."""
        self.position -= count
        assert self.position >= self._sound.pcm.start, "taken back further than is kept"
        if self.first_audible is not None and self.first_audible >= self.position:
            self.first_audible = None

    def block(self, size: int) -> AudioBlock | None:
        """Return the next samples, at most `size`, or None if nothing may sound or nothing is
        queued."""
        ready = min(size, self.queued)
        if not ready or not self.open or self.paused or self.stopped:
            return None
        if not self.position and not self.finished and self.queued < self.lead:
            return None
        start, buffer = self.position, self._sound.pcm
        pcm = buffer.read(start, start + ready)
        self.position += ready
        audible = self._find_audible(pcm, start)
        if self._rising:
            pcm, self._rising = fade_in(pcm, samples(FADE_MS, self.rate)), False
        buffer.drop(self.position - KEPT_S * self.rate)
        return AudioBlock(pcm, start, self._begun(), audible)

    def heard(self, unplayed: int = 0) -> Heard:
        """Return what has been heard, if the speaker still holds the last `unplayed` samples."""
        played = max(0, self.position - unplayed)
        words = [word for word in self._sound.words if word.end <= played]
        return Heard(
            self.turn,
            tuple(word.text for word in words),
            max((word.tokens for word in words), default=0),
            played,
            self.finished and played == self.end,
        )

    def said_a_clause(self, unplayed: int = 0) -> bool:
        """Return whether the first clause has been heard to its end, if the speaker still holds the
        last `unplayed` samples."""
        begins = [start for start, _ in self._sound.clauses[1:2]]
        end = begins[0] if begins else self.end if self.finished else math.inf
        return self.position - unplayed >= end

    def _find_audible(self, pcm: Pcm, start: int) -> int | None:
        if self.first_audible is not None:
            return None
        loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
        if not len(loud):
            return None
        self.first_audible = start + int(loud[0])
        return int(loud[0])

    def _begun(self) -> tuple[Clause, ...]:
        begun = [clause for start, clause in self._sound.clauses if start < self.position]
        new = begun[self._announced :]
        self._announced += len(new)
        return tuple(new)
