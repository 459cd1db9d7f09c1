"""Saying clauses in tests."""

from __future__ import annotations

import numpy as np

from voiceloop.engines import Tts
from voiceloop.types import Clause, Pcm, Span, SpeechChunk


def clause(text: str, *, last: bool = True, index: int = 0) -> Clause:
    """A clause that is said as `text`, with a span for each word."""
    spans, at = list[Span](), 0
    for count, word in enumerate(text.split()):
        at = text.index(word, at)
        spans.append(Span(at, at + len(word), count + 1))
        at += len(word)
    return Clause(1, index, text, text, tuple(spans), last)


def say(
    engine: Tts, said: Clause, voice: str | None = None, speed: float = 1.0
) -> list[SpeechChunk]:
    return [chunk for chunk in engine.synthesize(said, voice, speed) if chunk is not None]


def joined(chunks: list[SpeechChunk]) -> Pcm:
    return np.concatenate([chunk.pcm for chunk in chunks])
