"""`voiceloop bench tts`: how soon a clause sounds, how fast it is made, and whether it is heard.

Replies are cut into clauses and spoken one after the other, as fast as they can be. A recogniser
may write down what it hears of them. Of an engine this module knows only what its Protocol tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import soxr

from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bench.machine import most_memory_mb, surroundings
from voiceloop.bench.record import Record, Values, spread
from voiceloop.bench.scoring import word_errors
from voiceloop.config import Config
from voiceloop.engines import Asr, AsrRequest, Tts
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.loading import load_asr, load_tts
from voiceloop.tts.clauses import cut
from voiceloop.types import Clause, Pcm

MARGIN_MS = 300.0
"""Silence around a reply that is recognised."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    config: Config
    replies: int = 50
    recognise: bool = False
    """A recogniser writes down what it hears of them."""

    def __post_init__(self) -> None:
        most = len(texts())
        if not 0 < self.replies <= most:
            raise ConfigError(f"there are {most} replies", f"set --replies to 1 to {most}")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A clause that was spoken."""

    pcm: Pcm
    first_s: float
    """Until its first sound was there."""
    whole_s: float
    """Until all of it was."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """An engine, and what it took to load it."""

    tts: Tts
    seconds: float
    memory_mb: float


def texts() -> list[str]:
    """The replies that are spoken."""
    text = (files("voiceloop.bench") / "replies.txt").read_text(encoding="utf-8")
    return text.splitlines()


def load(make: Callable[[], Tts]) -> Loaded:
    """Load an engine and see what that takes."""
    before, begun = most_memory_mb(), perf_counter()
    tts = make()
    return Loaded(tts, perf_counter() - begun, most_memory_mb() - before)


def speak(tts: Tts, text: str) -> list[Spoken]:
    """The clauses of a reply."""
    return [_spoken(tts, clause) for clause in cut(text, language(tts.language()))]


def _spoken(tts: Tts, clause: Clause) -> Spoken:
    begun, first, pieces = perf_counter(), 0.0, [silence(0)]
    for chunk in tts.synthesize(clause):
        if chunk is not None and len(chunk.pcm):
            first = first or perf_counter() - begun
            pieces.append(chunk.pcm)
    return Spoken(np.concatenate(pieces), first, perf_counter() - begun)


def heard(asr: Asr, sound: Pcm, rate: int) -> str:
    """What a recogniser hears of a reply."""
    around = silence(samples(MARGIN_MS))
    pcm = np.concatenate((around, soxr.resample(sound, rate, SPEECH_RATE), around))
    return " ".join(word.text for word in asr.transcribe(AsrRequest(pcm)))


def run(plan: Plan, progress: Callable[[str], None]) -> Record:
    """Load the engines and measure; raises what loading raises."""
    machine = surroundings()
    progress("loading the models")
    loaded = load(lambda: load_tts(plan.config))
    asr = load_asr(plan.config) if plan.recognise else None
    return record(plan, loaded.tts, asr, measure(plan, loaded, asr, progress), machine)


def measure(
    plan: Plan, loaded: Loaded, asr: Asr | None, progress: Callable[[str], None]
) -> dict[str, Any]:
    """The figures of a synthesizer; with the words that `asr` got wrong, if there is one."""
    tts, clauses, compared = loaded.tts, list[Spoken](), list[dict[str, Any]]()
    speak(tts, texts()[0])  # a first call is slower than all others
    for number, text in enumerate(texts()[: plan.replies]):
        progress(f"reply {number + 1} of {plan.replies}")
        spoken = speak(tts, text)
        clauses += spoken
        if asr is not None:
            sound = np.concatenate([one.pcm for one in spoken])
            written = heard(asr, sound, tts.rate)
            found = word_errors(text, written)
            compared.append(
                {"said": text, "heard": written, "words": found.words, "errors": found.errors}
            )
    return _figures(loaded, clauses) | ({"recognised": compared} if asr is not None else {})


def _figures(loaded: Loaded, clauses: Sequence[Spoken]) -> dict[str, Any]:
    audio_s = sum(len(one.pcm) for one in clauses) / loaded.tts.rate
    return {
        "clauses": len(clauses),
        "audio_s": round(audio_s, 2),
        "first_audio_ms": spread([1000 * one.first_s for one in clauses]),
        "whole_clause_ms": spread([1000 * one.whole_s for one in clauses]),
        "first_share": round(median(one.first_s / one.whole_s for one in clauses), 3),
        "real_time_factor": round(sum(one.whole_s for one in clauses) / audio_s, 4),
        "load_ms": round(1000 * loaded.seconds),
        "memory_mb": round(loaded.memory_mb),
    }


def record(plan: Plan, tts: Tts, asr: Asr | None, measured: Values, machine: Values) -> Record:
    """What was `measured`, with all that belongs to it."""
    settings = {
        "tts": tts.name,
        "voice": tts.voice,
        "rate": tts.rate,
        "speed": plan.config.tts.speed,
        "asr": asr.name if asr else None,
        "replies": plan.replies,
    }
    return Record("tts", machine, settings, measured)
