"""The chunks of a clause that is synthesised piece by piece.

The silence around it goes, the pause behind it comes, and each word is told with the piece that it
ends in. This module knows no models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from voiceloop.audio import silence
from voiceloop.engines import Steps
from voiceloop.tts.edges import Trimmer, pause
from voiceloop.types import Clause, Pcm, SpeechChunk, SpokenWord


def chunks(
    clause: Clause,
    rate: int,
    speed: float,
    pieces: Iterable[tuple[Pcm, bool]],
    words: Sequence[SpokenWord],
) -> Steps[SpeechChunk]:
    """A step for each of `pieces`, samples at `rate` with whether they are the last.

    `words` are timed in those samples, in order.
    """
    trimmer, sounded, words = Trimmer(rate), 0, list(words)
    for piece, last in pieces:
        pcm = trimmer.feed(piece)
        if last:
            pcm = np.concatenate((pcm, trimmer.finish()))
        first, sounded = sounded, sounded + len(pcm)
        ended = [word for word in words if last or word.end - trimmer.cut <= sounded]
        del words[: len(ended)]
        if last and sounded:
            pcm = np.concatenate((pcm, pause(clause, rate, speed)))
        times = tuple(_shifted(word, trimmer.cut, sounded) for word in ended)
        chunk = SpeechChunk(clause.turn, clause, pcm, rate, first, times, last)
        yield chunk if last or len(pcm) else None


def unsaid(clause: Clause, rate: int) -> SpeechChunk:
    """The one chunk of a clause without anything to say: no audio."""
    words = tuple(SpokenWord(0, 0, span) for span in range(len(clause.spans)))
    return SpeechChunk(clause.turn, clause, silence(0), rate, 0, words, last=True)


def _shifted(word: SpokenWord, cut: int, end: int) -> SpokenWord:
    """`word` where `cut` samples are gone in front, and none sound from `end` on."""
    return SpokenWord(
        min(max(0, word.start - cut), end), min(max(0, word.end - cut), end), word.span
    )
