"""The suites of the bench: synthetic recordings whose words and end of speech are known.

    starter    questions that the starter models were not trained on
    questions  questions and requests of many kinds for any models, in voices of flite

A clip depends only on the suite's name, the seed and the number of the clip. So the same seed gives
the same samples, and a longer suite begins with the clips of a shorter one.
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

SuiteName = Literal["starter", "questions"]
Item = TypeVar("Item")

_FOLDER = Path(__file__).parent
SENTENCES = tomllib.loads((_FOLDER / "sentences.toml").read_text(encoding="utf-8"))
"""Lines by kind. A mark, `|` or `~`, is before each word at which the user may have finished
already."""
GENERAL = tuple((_FOLDER / "questions.txt").read_text(encoding="utf-8").splitlines())
"""Questions and requests of many kinds, short and long. None of them belongs to the starter models'
domain. They have no digits, so that transcripts can be compared."""

LEAD_MS = (300.0, 700.0)
"""Bounds of the silence before speech, in ms. Its length is random, so that speech may begin
anywhere in a window of the VAD."""
TAIL_MS = 300.0
"""Silence at the end of a clip, in ms. After the clip, its background goes on."""
SPEECH_DBFS = (-30.0, -24.0)
"""Bounds of the RMS level of speech, in dB relative to full scale. The loudest samples of the
speech are some 20 dB above that level."""
BACKGROUND_S = 6
"""Length of the background noise in seconds. The noise is repeated."""
FADE_MS = 3
"""Length in ms of the fades at the beginning and the end of espeak-ng's speech, which may begin or
end in the middle of a sound."""
MARGIN_MS = 5
"""Length in ms of the sound that is kept before the first and after the last audible sample."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The random choices of one clip: its random generator, and its voice and speed."""

    suite: str
    index: int
    seed: int
    rng: Rng
    voice: str
    speed: float

    @classmethod
    def of(cls, suite: str, index: int, seed: int) -> Drawn:
        """Make the generator of clip `index` of a suite, and draw the voice and its speed."""
        rng = np.random.default_rng((seed, zlib.crc32(suite.encode()), index))
        return cls(suite, index, seed, rng, *draw_voice(rng))

    def pick(self, pool: Sequence[Item], every: int = 1) -> Item:
        """Return this clip's item of the shuffled `pool`. `every` clips in a row share an item."""
        rng = np.random.default_rng((self.seed, zlib.crc32(self.suite.encode())))
        order: list[int] = rng.permutation(len(pool)).tolist()
        return pool[order[self.index // every % len(pool)]]

    def line(self, text: str) -> Line:
        """Return `text` as a line in this clip's voice and speed."""
        return Line(text, self.voice, self.speed)

    def uniform(self, bounds: tuple[float, float]) -> float:
        """Draw a number between `bounds`."""
        return float(self.rng.uniform(*bounds))


def build(name: SuiteName, count: int, seed: int = 0) -> tuple[Clip, ...]:
    """Make the first `count` clips of a suite.

    Raises EngineError without a working espeak-ng, or for `questions` without flite.
    """
    drawn = [Drawn.of(name, index, seed) for index in range(count)]
    if name == "questions":
        drawn = [replace(one, voice=one.pick(FLITE_VOICES)) for one in drawn]
        lines = [one.line(one.pick(GENERAL)) for one in drawn]
        spoken, fade = by_flite(lines), 0
    else:
        texts = SENTENCES["questions"].replace("|", "").replace("~", "").strip().splitlines()
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
    """Make a clip of `sound`, with `TAIL_MS` of silence after it and the noise of a quiet room."""
    background = room(drawn.rng, BACKGROUND_S * SPEECH_RATE)
    sound = np.concatenate((sound, silence(samples(TAIL_MS))))
    pcm = sound + np.resize(background, len(sound))
    return Clip(f"{drawn.suite}-{drawn.index:03}", pcm, background, said)
