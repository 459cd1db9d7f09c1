"""Clips, takes and records of which everything is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from voiceloop.asr.turns import TurnEnded
from voiceloop.bench.clips import Clip, ClipSpeech
from voiceloop.bench.takes import Take
from voiceloop.trace.record import Mark, Recorder
from voiceloop.types import Transcript, TurnTrace, Word

RATE = 16_000
MACHINE = {
    **{"processor": "A & B", "cores": 2, "threads": 1, "load": 0.5, "system": "Linux x86_64"},
    **{"python": "3.11.7", "torch": "2.13", "voiceloop": "0.1.0"},
}
BEGAN = 100.0
"""When sample 0 of every take was recorded."""
END = 2.0
"""When speech ends, in seconds of the clip."""


def at(seconds: float) -> int:
    """The sample at `seconds` of the clip."""
    return round(seconds * RATE)


def clip(name: str = "a-000", *, text: str = "what is the time") -> Clip:
    """Something said from 0.5 to `END` seconds."""
    silence = np.zeros(at(0.1), np.float32)
    return Clip(name, silence, silence, ClipSpeech(text, at(0.5), at(END)))


def answered(
    turn: int = 1, *, end: float = END, endpoint: float = 0.2, sound: float = 0.3
) -> Recorder:
    """A turn that ended at `end`, with its endpoint and first sound so many seconds later."""
    recorder = Recorder(turn)
    for mark, after in (
        (Mark.SPEECH_START, -1.5),
        (Mark.SPEECH_END, 0.01),
        (Mark.ENDPOINT, endpoint),
        (Mark.TRANSCRIPT_FINAL, endpoint),
        (Mark.FIRST_CLAUSE, endpoint + (sound - endpoint) / 2),
        (Mark.FIRST_SYNTHESIS, sound),
        (Mark.FIRST_SOUND, sound),
    ):
        recorder.mark(mark, BEGAN + end + after)
    return recorder


def take(
    *traces: TurnTrace,
    ends: Sequence[float] = (),
    heard: Sequence[str] = (),
    interrupted: float | None = None,
    mode: str = "speculative",
    cpu_s: float = 1.0,
) -> Take:
    """A take with endpoints at `ends` seconds, in which a turn for each of `heard` was heard."""
    return Take(
        mode,
        tuple(TurnEnded(at(end), at(end - 0.2)) for end in ends),
        traces,
        tuple(
            Transcript(turn, 1, tuple(Word(word, 0, 0) for word in text.split()), final=True)
            for turn, text in enumerate(heard, 1)
        ),
        None if interrupted is None else at(interrupted),
        BEGAN,
        cpu_s,
    )


def clip_record(name: str, **takes: dict[str, Any]) -> dict[str, Any]:
    """A clip's part of a record."""
    return {"name": name, "text": "what is the time", "takes": takes}


def take_record(voice_to_voice_ms: float | None, **others: Any) -> dict[str, Any]:
    """What a record says of a take; an endpoint after half of the time unless told otherwise."""
    whole = voice_to_voice_ms
    return {
        "heard_as": "what is the time",
        "voice_to_voice_ms": whole,
        "endpoint_to_sound_ms": None if whole is None else whole / 2,
        "endpoint_delay_ms": None if whole is None else whole / 2,
        "parts_ms": {} if whole is None else {"endpoint wait": whole / 2, "llm": whole / 2},
        "cut_offs": 0,
        "words": 4,
        "word_errors": 0,
        "wasted_tokens": 0,
        "replies_dropped": 0,
        "cpu_s": 1.0,
        **others,
    }
