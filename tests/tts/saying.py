"""Saying clauses in tests."""

from __future__ import annotations

import numpy as np
import torch

from voiceloop.engines import Tts
from voiceloop.errors import VoiceloopError
from voiceloop.types import Clause, Pcm, Span, SpeechChunk

TEXTS = (
    "hi",
    "Hello there, how are you?",
    "The capital of France is Paris: a city of two million people, and it lies on the Seine.",
)


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


def check_same(engine: Tts, another: Tts) -> None:
    """A clause always sounds the same, and other users of torch's generator see nothing."""
    said = joined(say(engine, clause(TEXTS[1])))
    torch.manual_seed(7)
    before = torch.get_rng_state()
    again = joined(say(engine, clause(TEXTS[1], index=3)))
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(said, again)
    assert np.array_equal(said, joined(say(another, clause(TEXTS[1]))))
    other = joined(say(engine, clause(TEXTS[1].replace("you", "yew"))))
    assert not np.array_equal(other[:1000], said[:1000])


def check_line(error: VoiceloopError, *, says: str) -> None:
    """The error is one line with a hint."""
    assert says in error.message and error.hint
    assert "\n" not in error.message + error.hint
