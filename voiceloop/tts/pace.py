"""How synthesis keeps ahead of the ear: how much to wait for, and how much to say in one go.

The first clause and the rest of its sentence are spoken as soon as they are written. Once plenty of
audio is queued there is time to speak several sentences in one go, which sounds better and costs
less. Pure bookkeeping: no clock, no engine, no audio.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from voiceloop.types import Clause, Span

AMPLE_S = 1.5
"""Queued audio that leaves time for more than a sentence."""
LONG_CHARS = 150
"""To a clause of so many characters no other is joined: more would have to be thrown away where it
is interrupted, and some engines lose their way in long ones."""
COMFORTABLE = 0.8
"""Real-time factor up to which nothing has to be queued before the sound begins."""
REPLY_S = 6.0
"""Length of a reply that is to sound without a gap where synthesis is slower than speech."""
RECENT = 8


class Pace:
    """The real-time factor of an engine, as measured."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)

    def observe(self, audio_s: float, took_s: float) -> None:
        """A clause of `audio_s` seconds took `took_s` to synthesise."""
        self._recent.append((audio_s, took_s))

    @property
    def factor(self) -> float:
        """Seconds of work for a second of audio; 0 while nobody knows."""
        audio = sum(audio for audio, _ in self._recent)
        return sum(took for _, took in self._recent) / audio if audio else 0.0

    @property
    def lead_s(self) -> float:
        """Audio to queue before the sound begins, so that it does not run dry.

        Of a reply of `REPLY_S`, what is left when the queue has been played is done by then.
        """
        factor = self.factor
        return 0.0 if factor <= COMFORTABLE else REPLY_S * (1 - COMFORTABLE / factor)


def joined(first: Clause, second: Clause) -> Clause:
    """Two clauses of a reply that follow one another, as one."""
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
