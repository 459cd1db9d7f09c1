"""Paces synthesis ahead of playback: how much audio to queue, and how much text to say at once.

The first clause and the rest of its sentence are spoken as soon as they are written. Once enough
audio is queued, there is time to say several sentences at once, which sounds better and costs less.
This is pure bookkeeping: no clock, no engine, no audio.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from voiceloop.types import Clause, Span

AMPLE_S = 1.5
"""With at least this many seconds of queued audio, several sentences are synthesised at once."""
LONG_CHARS = 150
"""A clause of this many characters or more is not joined with the next clause. An interruption of a
longer text would waste more audio, and some engines make mistakes in long texts."""
COMFORTABLE = 0.8
"""Maximum real-time factor, in seconds of work for a second of audio, for which playback begins
without queued audio."""
REPLY_S = 6.0
"""Seconds of a reply that must play without a gap, even if synthesis is slower than speech."""
RECENT = 8


class Pace:
    """The real-time factor of an engine, measured over its last clauses."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)

    def observe(self, audio_s: float, took_s: float) -> None:
        """Note that a clause of `audio_s` seconds took `took_s` seconds to synthesise."""
        self._recent.append((audio_s, took_s))

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
