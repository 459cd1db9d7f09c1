"""`voiceloop bench tts`: measures the first sound, the speed and the clarity of a synthesizer.

Replies are cut into clauses, which are synthesised one after the other without a pause. With
`--recognise`, a recogniser transcribes the replies. This module uses engines through their
protocols only.
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

from voiceloop.assembly.loading import load_asr, load_tts
from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bench.command import BenchTts, Found
from voiceloop.bench.record import BenchRecord, most_memory_mb, spread, surroundings, word_errors
from voiceloop.engines import Asr, AsrRequest, Tts
from voiceloop.errors import ConfigError
from voiceloop.languages import language
from voiceloop.tts.clauses import cut
from voiceloop.types import Clause, Pcm

MARGIN_MS = 300.0
"""Silence before and after a reply that is transcribed, in ms."""


@dataclass(frozen=True, slots=True)
class SpokenClause:
    """The sound of a clause, and the time that its synthesis took."""

    pcm: Pcm
    first_s: float
    """Seconds until the first sound was ready."""
    whole_s: float
    """Seconds until all of the sound was ready."""


def texts() -> list[str]:
    """Return the texts that may be spoken, one for each reply."""
    text = (files("voiceloop.bench") / "replies.txt").read_text(encoding="utf-8")
    return text.splitlines()


def speak(tts: Tts, text: str) -> list[SpokenClause]:
    """Synthesise the clauses of a reply, one after the other."""
    return [_spoken(tts, clause) for clause in cut(text, language(tts.language()))]


def _spoken(tts: Tts, clause: Clause) -> SpokenClause:
    begun, first, pieces = perf_counter(), 0.0, [silence(0)]
    for chunk in tts.synthesize(clause):
        if chunk is not None and len(chunk.pcm):
            first = first or perf_counter() - begun
            pieces.append(chunk.pcm)
    return SpokenClause(np.concatenate(pieces), first, perf_counter() - begun)


def heard(asr: Asr, sound: Pcm, rate: int) -> str:
    """Return the transcript of `sound`, which is resampled from `rate` hertz."""
    around = silence(samples(MARGIN_MS))
    pcm = np.concatenate((around, soxr.resample(sound, rate, SPEECH_RATE), around))
    return " ".join(word.text for word in asr.transcribe(AsrRequest(pcm)))


def run(command: BenchTts, progress: Callable[[str], None]) -> Found:
    """Load the engines and measure them. Raises ConfigError for a number of replies that is out of
    range, and what loading raises."""
    most, config = len(texts()), command.settings
    if not 0 < command.replies <= most:
        raise ConfigError(f"there are {most} replies", f"set --replies to 1 to {most}")
    machine = surroundings()
    progress("loading the models")
    held, begun = most_memory_mb(), perf_counter()
    tts = load_tts(config)
    loaded = {
        "load_ms": round(1000 * (perf_counter() - begun)),
        "memory_mb": round(most_memory_mb() - held),
    }
    asr = load_asr(config) if command.recognise else None
    settings = {
        "tts": tts.name,
        "voice": tts.voice,
        "rate": tts.rate,
        "speed": config.tts.speed,
        "asr": asr.name if asr else None,
        "replies": command.replies,
    }
    found, heard = measure(texts()[: command.replies], tts, asr, progress)
    return BenchRecord("tts", machine, settings, found | loaded, heard), {}


def measure(
    replies: Sequence[str], tts: Tts, asr: Asr | None, progress: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Speak `replies` with `tts`. Return its figures, and the transcripts by `asr`, which are empty
    if `asr` is None."""
    clauses, compared = list[SpokenClause](), list[dict[str, Any]]()
    speak(tts, texts()[0])  # the first call is slower than all others
    for number, text in enumerate(replies):
        progress(f"reply {number + 1} of {len(replies)}")
        spoken = speak(tts, text)
        clauses += spoken
        if asr is not None:
            written = heard(asr, np.concatenate([one.pcm for one in spoken]), tts.rate)
            wrong = word_errors(text, written)
            counts = {"words": wrong.words, "errors": wrong.errors}
            compared.append({"said": text, "heard": written, **counts})
    audio_s = sum(len(one.pcm) for one in clauses) / tts.rate
    found = {
        "clauses": len(clauses),
        "audio_s": round(audio_s, 2),
        "first_audio_ms": spread([1000 * one.first_s for one in clauses]),
        "whole_clause_ms": spread([1000 * one.whole_s for one in clauses]),
        "first_share": round(median(one.first_s / one.whole_s for one in clauses), 3),
        "real_time_factor": round(sum(one.whole_s for one in clauses) / audio_s, 4),
    }
    if asr is None:
        return found, {}
    words = {name: sum(one[name] for one in compared) for name in ("words", "errors")}
    return found | words, {"recognised": compared}
