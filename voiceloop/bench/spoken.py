"""Speaks texts with espeak-ng or with the program flite, with the same samples in every run.

espeak-ng carries the phase of its pitch from one utterance to the next, so its samples depend on
everything that it has spoken before. Therefore each call starts it in a new process. The starter
recogniser was not trained on the voices of flite, nor on similar ones.
"""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import soundfile

from voiceloop.audio.frames import SPEECH_RATE, Resampler
from voiceloop.bench.background import Rng
from voiceloop.errors import EngineError
from voiceloop.processes import deaf_to_ctrl_c, end_in_silence
from voiceloop.tts.espeak import Espeak
from voiceloop.types import Clause, Pcm, Span, SpeechChunk

ESPEAK_VOICES = (
    *("en-us", "en", "en-gb-x-rp", "en-gb-scotland", "en-029", "en-gb-x-gbclan"),
    *("en-us+m3", "en-us+f4", "en-us+Annie", "en+david", "en-gb-x-rp+f4", "en-gb-scotland+m2"),
)
"""Accents and variants that the starter recogniser was trained on.

Variants with breath are left out, because espeak-ng draws breath at random without a seed.
"""
FLITE_VOICES = ("awb", "kal16", "rms", "slt")
"""Voices of flite at 16 kHz that can say any text. `kal16` is made of diphones; the others are
statistical models of a speaker."""
SLOWEST, FASTEST = 0.85, 1.1
"""Bounds of the speeds that are drawn; 1.0 is a voice's own speed."""
INSTALL = "install the package flite, or choose a suite that does without: --suite starter"


@dataclass(frozen=True, slots=True)
class Line:
    """A text, with the voice and the speed in which it is spoken."""

    text: str
    voice: str
    """Name of the voice in its synthesizer."""
    speed: float = 1.0


def draw_voice(rng: Rng, voices: Sequence[str] = ESPEAK_VOICES) -> tuple[str, float]:
    """Draw one of `voices`, and a speed."""
    return voices[int(rng.integers(len(voices)))], float(rng.uniform(SLOWEST, FASTEST))


def resampled(pcm: Pcm, rate: int) -> Pcm:
    """Resample `pcm` from `rate` hertz to 16 kHz."""
    resampler = Resampler(rate, SPEECH_RATE)
    return np.concatenate((resampler.feed(pcm), resampler.flush()))


def by_espeak(lines: Sequence[Line]) -> list[SpeechChunk]:
    """Speak all `lines`, one after the other, in a new process.

    Raises ConfigError for an unknown voice, EngineError without a working espeak-ng.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), end_in_silence) as pool:
        with deaf_to_ctrl_c():
            spoken = pool.map(_chunk, lines)
        return list(spoken)


def _chunk(line: Line) -> SpeechChunk:
    spans = tuple(Span(word.start(), word.end(), 0) for word in re.finditer(r"\S+", line.text))
    clause = Clause(0, 0, line.text, line.text, spans, last=True)
    (chunk,) = filter(None, Espeak(line.voice, line.speed).synthesize(clause))
    return chunk


def by_flite(lines: Sequence[Line]) -> list[Pcm]:
    """Speak each of `lines` at its voice's own speed times `line.speed`; return sounds at 16 kHz.

    Raises EngineError if flite is missing, lacks a voice or fails.
    """
    # For an unknown voice flite would use its first one without an error.
    known = set(_flite("-lv").decode().split())
    for line in lines:
        if line.voice not in known:
            raise EngineError(f"this flite has no voice called '{line.voice}'", INSTALL)
    return [_spoken(line) for line in lines]


def _spoken(line: Line) -> Pcm:
    stretch = f"duration_stretch={1 / line.speed:.6f}"
    options = ("-voice", line.voice, "--setf", stretch, "-t", line.text)
    pcm, rate = soundfile.read(io.BytesIO(_flite(*options, "-o", "/dev/stdout")), dtype="float32")
    return resampled(np.asarray(pcm, np.float32), rate)


def _flite(*options: str) -> bytes:
    """Run flite and return what it prints."""
    try:
        return subprocess.run(["flite", *options], capture_output=True, check=True).stdout
    except OSError as error:
        raise EngineError(f"flite cannot be run: {error.strerror}", INSTALL) from error
    except subprocess.CalledProcessError as error:
        raise EngineError(f"flite broke with status {error.returncode}", INSTALL) from error
