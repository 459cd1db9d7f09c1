"""Recordings of which the truth is known, made by a recipe: the suites of the bench.

    starter    questions that the starter models were not trained on
    questions  questions and requests of many kinds for any models, in voices of flite
    bargein    questions with long answers

Each clip is drawn by itself from the suite's name, the seed and its number: the same seed gives the
same samples, and more clips the same first ones.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, fade_in, fade_out, samples, silence
from voiceloop.bench.background import Rng, at_level, room
from voiceloop.bench.clips import Clip, ClipSpeech, audible
from voiceloop.bench.spoken import (
    FLITE_VOICES,
    Line,
    by_espeak,
    by_flite,
    draw_voice,
    resampled,
)
from voiceloop.types import Pcm

SuiteName = Literal["starter", "questions", "bargein"]
Item = TypeVar("Item")

_FOLDER = Path(__file__).parent
SENTENCES = tomllib.loads((_FOLDER / "sentences.toml").read_text(encoding="utf-8"))
"""Lines by what they are for. `|` or `~` before a word says that the words before it may be all."""
GENERAL = tuple((_FOLDER / "questions.txt").read_text(encoding="utf-8").splitlines())
"""Facts, advice, opinions, small talk and requests, short and long, none of the starter models'
domain; in words alone, so that a transcript can be compared."""

LEAD_MS = (300.0, 700.0)
"""Silence before the speech; drawn, so that it begins anywhere within a window of the VAD."""
TAIL_MS = 300.0
"""Silence behind it that is in the clip; then the background goes on."""
SPEECH_DBFS = (-30.0, -24.0)
"""Level of the speech; its loudest samples are some 20 dB above that."""
BACKGROUND_S = 6
"""Length of a background, after which it is heard again."""
FADE_MS = 3
"""Of both edges of what espeak-ng says, which may begin or end in the middle of a sound."""
MARGIN_MS = 5
"""What is kept of the sound below what is audible, on both sides of what is said."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One clip's number, its source of chance, and who speaks in it."""

    suite: str
    index: int
    seed: int
    rng: Rng
    voice: str
    speed: float

    @classmethod
    def of(cls, suite: str, index: int, seed: int) -> Drawn:
        """Draw who speaks in the clip `index` of a suite."""
        rng = np.random.default_rng((seed, zlib.crc32(suite.encode()), index))
        return cls(suite, index, seed, rng, *draw_voice(rng))

    def pick(self, pool: Sequence[Item], every: int = 1) -> Item:
        """Return the item of this clip; every so many clips take the next one, in a drawn order."""
        rng = np.random.default_rng((self.seed, zlib.crc32(self.suite.encode())))
        order: list[int] = rng.permutation(len(pool)).tolist()
        return pool[order[self.index // every % len(pool)]]

    def line(self, text: str) -> Line:
        """Have this clip's voice say a text."""
        return Line(text, self.voice, self.speed)

    def uniform(self, bounds: tuple[float, float]) -> float:
        """Draw a number between two others."""
        return float(self.rng.uniform(*bounds))


def lines_of(kind: str) -> tuple[str, ...]:
    """Return the lines of a kind in `SENTENCES`, without marks."""
    return tuple(SENTENCES[kind].replace("|", "").replace("~", "").strip().splitlines())


def build(name: SuiteName, count: int, seed: int = 0) -> tuple[Clip, ...]:
    """Make the first `count` clips of a suite.

    Raises EngineError without a working espeak-ng, or flite for `questions`.
    """
    drawn = [Drawn.of(name, index, seed) for index in range(count)]
    if name == "questions":
        drawn = [replace(one, voice=one.pick(FLITE_VOICES)) for one in drawn]
        lines = [one.line(one.pick(GENERAL)) for one in drawn]
        spoken, fade = by_flite(lines), 0
    else:
        texts = lines_of("questions" if name == "starter" else "long_answers")
        lines = [one.line(one.pick(texts)) for one in drawn]
        spoken = [resampled(chunk.pcm, chunk.rate) for chunk in by_espeak(lines)]
        fade = samples(FADE_MS)
    made = zip(drawn, lines, spoken, strict=True)
    return tuple(_clip(one, line.text, pcm, fade) for one, line, pcm in made)


def _clip(drawn: Drawn, text: str, pcm: Pcm, fade: int) -> Clip:
    lead, dbfs = samples(drawn.uniform(LEAD_MS)), drawn.uniform(SPEECH_DBFS)
    pcm, margin = at_level(pcm, dbfs), samples(MARGIN_MS)
    if fade:
        pcm = fade_out(fade_in(pcm, fade), fade)
    start, end = audible(pcm)
    around = silence(margin)
    kept = np.concatenate((around, pcm, around))[start : end + 2 * margin]
    sound = np.concatenate((silence(lead - margin), kept))
    return in_room(drawn, sound, ClipSpeech(text, *audible(sound)))


def in_room(drawn: Drawn, sound: Pcm, said: ClipSpeech) -> Clip:
    """Make a clip of `sound` in a quiet room."""
    background = room(drawn.rng, BACKGROUND_S * SPEECH_RATE)
    sound = np.concatenate((sound, silence(samples(TAIL_MS))))
    pcm = sound + np.resize(background, len(sound))
    return Clip(f"{drawn.suite}-{drawn.index:03}", pcm, background, said)
