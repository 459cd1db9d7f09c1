"""Turns the samples of a clause into chunks, for engines that make the samples piece by piece.

The silence around the clause is trimmed, the pause after it is added, and each word is reported
with the piece in which it ends. This module does not know how samples are made.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from voiceloop.audio.frames import silence
from voiceloop.engines import Steps
from voiceloop.tts.alignment import PacedWords, TimedWords
from voiceloop.tts.edges import Trimmer, pause
from voiceloop.types import Clause, Pcm, SpeechChunk, SpokenWord


def nothing(clause: Clause, rate: int) -> SpeechChunk:
    """Return the only chunk of a clause with nothing to say. Its words are over at once."""
    words = tuple(SpokenWord(0, 0, span) for span in range(len(clause.spans)))
    return SpeechChunk(clause.turn, clause, silence(0), rate, 0, words, last=True)


def deliver(
    clause: Clause,
    pieces: Iterator[tuple[Pcm, bool]],
    words: TimedWords | PacedWords,
    rate: int,
    speed: float,
) -> Steps[SpeechChunk]:
    """Yield the chunks of a clause. Each of `pieces` takes one step, and has a flag that is true
    for the last piece. A step that completes no sound yields None."""
    trimmer, sounded = Trimmer(rate), 0
    for made, last in pieces:
        pcm = trimmer.feed(made)
        if last:
            pcm = np.concatenate((pcm, trimmer.finish()))
        if not (last or len(pcm)):  # its words are reported with the next piece
            yield None
            continue
        first, sounded = sounded, sounded + len(pcm)
        ended = words.ended_words(trimmer.cut, sounded, last=last)
        if last and sounded:
            pcm = np.concatenate((pcm, pause(clause, rate, speed)))
        yield SpeechChunk(clause.turn, clause, pcm, rate, first, ended, last)
