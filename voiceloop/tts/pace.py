"""Paces synthesis ahead of playback: how much audio to queue, and how much text to say at once.

It also measures how fast replies are written and spoken, by which their first clauses are cut.

The first clause and the rest of its sentence are spoken as soon as they are written. Once enough
audio is queued, there is time to say several sentences at once, which sounds better and costs less.
This is pure bookkeeping: no clock, no engine, no audio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from voiceloop.types import Clause, Span

AMPLE_S = 1.5
"""With at least this many seconds of queued audio, several sentences are synthesised at once."""
LONG_CHARS = 150
"""A clause of this many characters or more is not joined with the next clause. An interruption of a
longer text would waste more audio, and some engines make mistakes in long texts."""
COMFORTABLE = 0.8
"""Maximum real-time factor, in seconds of work for a second of audio, for which playback begins
without queued audio."""
FIRST_WORDS, FIRST_CHARS = 3, 12
"""Minimum number of words or of characters in the first clause, unless its line is shorter. One of
the two is enough. A shorter clause would be over before the next clause is ready."""
FORCED_WORDS = 6
"""Number of words from which the first clause ends even without a mark, if text comes fast."""
PHRASE_S = 0.05
"""Seconds for which the first clause goes on after `FIRST_WORDS` words, to the end of a phrase."""
TOKENS_A_WORD = 1.35
"""Number of tokens of a word in running text, on average."""
REPLY_S = 6.0
"""Seconds of a reply that must play without a gap, even if synthesis is slower than speech."""
RECENT = 8
WRITTEN = 32
"""Number of pieces of text over which the speed of writing is measured."""


@dataclass(frozen=True, slots=True)
class Tempo:
    """How fast replies are written and spoken. Until that has been measured, it is that of a model
    too fast to matter, and of a usual voice."""

    token_s: float = 0.0
    """Seconds in which the language model writes a token."""
    char_s: float = 0.065
    """Seconds for which a character of spoken text sounds."""
    start_s: float = 0.06
    """Seconds from a clause to its first sound."""


@dataclass(slots=True)
class Hurry:
    """How soon the clauses of one reply have to end so that no silence comes before them."""

    tempo: Callable[[], Tempo]
    since: int = 0
    """Number of the reply's tokens that were written before the first clause ended."""

    @property
    def forced_words(self) -> int:
        """Number of words from which the first clause ends without a mark: fewer than
        `FORCED_WORDS` if text comes slowly, but not so slowly that a short clause would be over
        before the next one is ready."""
        tempo = self.tempo()
        word_s = tempo.token_s * TOKENS_A_WORD
        next_s = tempo.start_s + FIRST_WORDS * word_s
        if not word_s or FIRST_CHARS * tempo.char_s < next_s:
            return FORCED_WORDS
        return min(FIRST_WORDS + int(PHRASE_S / word_s), FORCED_WORDS)

    def slack_words(self, chars: int, tokens: int) -> float:
        """Return how many words can be written before the next clause has to be ready. The earlier
        clauses have `chars` characters, and the reply has `tokens` tokens so far. Infinite if text
        comes fast."""
        if self.forced_words == FORCED_WORDS:
            return inf
        tempo = self.tempo()
        left_s = chars * tempo.char_s - (tokens - self.since) * tempo.token_s - tempo.start_s
        return left_s / (tempo.token_s * TOKENS_A_WORD)


class Pace:
    """The speeds of a synthesizer and of a language model, measured over the last clauses."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self._spoken: deque[tuple[int, float, float]] = deque(maxlen=RECENT)
        self._written: deque[tuple[int, float]] = deque(maxlen=WRITTEN)

    def observe(self, audio_s: float, took_s: float) -> None:
        """Note that a clause of `audio_s` seconds took `took_s` seconds to synthesise."""
        self._recent.append((audio_s, took_s))

    def spoke(self, chars: int, audio_s: float, start_s: float) -> None:
        """Note that `chars` characters sound for `audio_s` seconds, and that their first sound took
        `start_s` seconds."""
        self._spoken.append((chars, audio_s, start_s))

    def wrote(self, tokens: int, took_s: float) -> None:
        """Note that the language model wrote `tokens` tokens in `took_s` seconds."""
        self._written.append((tokens, took_s))

    @property
    def tempo(self) -> Tempo:
        """How fast replies are written and spoken."""
        tempo = Tempo()
        if tokens := sum(tokens for tokens, _ in self._written):
            took = sum(took for _, took in self._written)
            tempo = replace(tempo, token_s=took / tokens)
        if chars := sum(chars for chars, _, _ in self._spoken):
            audio = sum(audio for _, audio, _ in self._spoken)
            start = sum(start for *_, start in self._spoken) / len(self._spoken)
            tempo = replace(tempo, char_s=audio / chars, start_s=start)
        return tempo

    @property
    def factor(self) -> float:
        """Seconds of work for a second of audio; 0 while nothing has been measured."""
        audio = sum(audio for audio, _ in self._recent)
        return sum(took for _, took in self._recent) / audio if audio else 0.0

    @property
    def lead_s(self) -> float:
        """Seconds of audio to queue before playback begins, so that playback does not stop midway.

        The lead is REPLY_S (1 - COMFORTABLE / factor), or 0 for an engine that is fast enough.
        """
        factor = self.factor
        return 0.0 if factor <= COMFORTABLE else REPLY_S * (1 - COMFORTABLE / factor)


def joined(first: Clause, second: Clause) -> Clause:
    """Join two consecutive clauses of a reply into one."""
    gap = " " if first.spoken and second.spoken else ""
    offset = len(first.spoken) + len(gap)
    moved = tuple(
        Span(span.start + offset, span.end + offset, span.tokens) for span in second.spans
    )
    return replace(
        first,
        text=first.text + second.text,
        spoken=first.spoken + gap + second.spoken,
        spans=first.spans + moved,
        last=second.last,
    )
