"""Recordings of which the truth is known, made by a recipe: the suites of the bench.

    starter    questions that the starter models were not trained on, one a turn
    questions  questions and requests of many kinds for any models, in voices of flite
    pauses     the same with one or two silences of 200 to 700 ms between words
    bargein    questions with long answers, and a sound to make while the answer plays
    noise      questions among talkers, in hum or in hiss, at 20, 10 and 5 dB
    additions  questions that go on after a silence, most with words that leave the answer as it was

Each clip is drawn by itself from the suite's name, the seed and its number, and what espeak-ng
speaks is spoken in a process of its own: the same seed gives the same samples, and more clips the
same first ones.
This module knows nothing of sessions and of what they make of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bench import flite
from voiceloop.bench.clips import Clip, Interruption, InterruptionKind, NoiseKind, Said
from voiceloop.bench.sentences import (
    ADDITIONS,
    BACKCHANNELS,
    INTERRUPTIONS,
    LONG_ANSWERS,
    QUESTIONS,
    Sentence,
    sentence,
)
from voiceloop.bench.sounds import (
    Rng,
    at_level,
    babble,
    cough,
    hiss,
    hum,
    rms,
    room,
    throat_clearing,
)
from voiceloop.bench.utterances import (
    MARGIN_MS,
    Line,
    Utterance,
    audible,
    draw_voice,
    place,
    speak,
)
from voiceloop.types import Pcm

SuiteName = Literal["starter", "questions", "pauses", "bargein", "noise", "additions"]

GENERAL = tuple(Path(__file__).with_name("questions.txt").read_text(encoding="utf-8").splitlines())
"""Facts, advice, opinions, small talk and requests, short and long, none of the starter models'
domain; in words alone, so that a transcript can be compared."""

LEAD_MS = (300.0, 700.0)
"""Silence before the speech; drawn, so that it begins anywhere within a window of the VAD."""
TAIL_MS = 300.0
"""Silence behind it that is in the clip; then the background goes on."""
SPEECH_DBFS = (-30.0, -24.0)
"""Level of the speech; its loudest samples are some 20 dB above that."""
PAUSE_MS = (200.0, 700.0)
DELAY_MS = (400.0, 1500.0)
"""From the first audible sample of an answer to that of an interruption."""
COUGH_PEAK = (0.3, 0.6)
"""Amplitude of the loudest sample of a cough."""
SNR_DB = (20.0, 10.0, 5.0)
BACKGROUND_S = 6
"""Length of a background, after which it is heard again."""
TALKERS, TABLES = 10, 4
"""Voices of a babble, and from how many places each is heard at once: as many people as a canteen
holds, whom a VAD does not take for one voice."""

_Plan = tuple[list[Line], Callable[[list[Utterance]], Clip]]
"""What a clip needs to have spoken, and how it is made of that."""
_Item = TypeVar("_Item")


def build(name: SuiteName, count: int, seed: int = 0) -> tuple[Clip, ...]:
    """The first `count` clips of a suite.

    Raises EngineError without a working espeak-ng, or flite for `questions`.
    """
    if name == "questions":
        return _general(count, seed)
    plans = [_RECIPES[name](_Take.of(name, index, seed)) for index in range(count)]
    spoken = iter(speak([line for lines, _ in plans for line in lines]))
    return tuple(make(list(islice(spoken, len(lines)))) for lines, make in plans)


@dataclass(frozen=True, slots=True)
class _Take:
    """One clip's number, its source of chance, and who speaks in it."""

    name: SuiteName
    index: int
    seed: int
    rng: Rng
    voice: str
    speed: float

    @classmethod
    def of(cls, name: SuiteName, index: int, seed: int) -> _Take:
        rng = np.random.default_rng((seed, zlib.crc32(name.encode()), index))
        return cls(name, index, seed, rng, *draw_voice(rng))

    def pick(self, pool: Sequence[_Item], every: int = 1) -> _Item:
        """The item of this clip; every so many clips take the next one, in a drawn order."""
        rng = np.random.default_rng((self.seed, zlib.crc32(self.name.encode())))
        order: list[int] = rng.permutation(len(pool)).tolist()
        return pool[order[self.index // every % len(pool)]]

    def line(self, text: str) -> Line:
        return Line(text, self.voice, self.speed)

    def uniform(self, bounds: tuple[float, float]) -> float:
        return float(self.rng.uniform(*bounds))


def _general(count: int, seed: int) -> tuple[Clip, ...]:
    """Questions in all voices of flite in turn; the times of their words are not known."""
    takes = [_Take.of("questions", index, seed) for index in range(count)]
    takes = [replace(take, voice=take.pick(flite.VOICES)) for take in takes]
    lines = [take.line(take.pick(GENERAL)) for take in takes]
    margin, clips = samples(MARGIN_MS), list[Clip]()
    for take, line, pcm in zip(takes, lines, flite.speak(lines), strict=True):
        lead, dbfs = samples(take.uniform(LEAD_MS)), take.uniform(SPEECH_DBFS)
        pcm = at_level(pcm, dbfs)
        start, end = audible(pcm)
        padded = np.concatenate((silence(margin), pcm))[start : end + 2 * margin]
        sound = np.concatenate((silence(lead - margin), padded))
        clips.append(_in_room(take, sound, Said(line.text, None, *audible(sound), ())))
    return tuple(clips)


def _starter(take: _Take) -> _Plan:
    asked = take.pick(QUESTIONS)
    return [take.line(asked.text)], lambda spoken: _clip(take, spoken[0], asked)


def _pauses(take: _Take) -> _Plan:
    asked = take.pick(QUESTIONS)

    def make(spoken: list[Utterance]) -> Clip:
        places = [word for word, distinct in enumerate(spoken[0].distinct) if word and distinct]
        count = min(len(places), take.rng.integers(1, 3))
        drawn = take.rng.choice(places, count, replace=False)
        return _clip(take, spoken[0], asked, {int(word): take.uniform(PAUSE_MS) for word in drawn})

    return [take.line(asked.text)], make


def _bargein(take: _Take) -> _Plan:
    """With words, a backchannel and a cough in turn; every other cough is a cleared throat."""
    asked = take.pick(LONG_ANSWERS)
    kind = get_args(InterruptionKind)[take.index % 3]
    pool = {"words": INTERRUPTIONS, "backchannel": BACKCHANNELS}.get(kind)
    text = take.pick(pool, every=3) if pool else ""
    clearing = not text and take.index // 3 % 2 == 1

    def make(spoken: list[Utterance]) -> Clip:
        clip = _clip(take, spoken[0], asked)
        voiced: int | None = 0
        if text:
            pcm, _ = place(spoken[1], sentence(text), {}, 0, take.uniform(SPEECH_DBFS))
        else:
            pcm, voiced = (throat_clearing if clearing else cough)(take.rng)
            pcm *= np.float32(take.uniform(COUGH_PEAK))
        start, end = audible(pcm)
        voiced = None if voiced is None else max(start, voiced)
        delay_ms = take.uniform(DELAY_MS)
        sound = Interruption(kind, text, pcm, start, end, delay_ms, voiced)
        return replace(clip, interruption=sound)

    return [take.line(one) for one in (asked.text, text) if one], make


def _noise(take: _Take) -> _Plan:
    """Every kind of noise at every level in turn."""
    asked = take.pick(QUESTIONS)
    kinds: tuple[NoiseKind, ...] = get_args(NoiseKind)
    kind, snr_db = list(product(kinds, SNR_DB))[take.index % (len(kinds) * len(SNR_DB))]
    crowd = [
        Line(QUESTIONS[take.rng.integers(len(QUESTIONS))].text, *draw_voice(take.rng))
        for _ in range(TALKERS if kind == "babble" else 0)
    ]

    def make(spoken: list[Utterance]) -> Clip:
        length = BACKGROUND_S * SPEECH_RATE
        match kind:
            case "babble":
                talkers = [utterance.pcm for utterance in spoken[1:]]
                noise = babble(take.rng, length, 0, talkers * TABLES)
            case "hum":
                noise = hum(take.rng, length, 0)
            case "hiss":
                noise = hiss(take.rng, length, 0)
        return replace(_clip(take, spoken[0], asked, {}, noise, snr_db), noise=kind, snr_db=snr_db)

    return [take.line(asked.text), *crowd], make


def _additions(take: _Take) -> _Plan:
    addition = take.pick(ADDITIONS)
    asked = addition.sentence
    pause = {asked.standings.index("whole") + 1: take.uniform(PAUSE_MS)}

    def make(spoken: list[Utterance]) -> Clip:
        return replace(_clip(take, spoken[0], asked, pause), addition=addition)

    return [take.line(asked.text)], make


_RECIPES: Mapping[str, Callable[[_Take], _Plan]] = {
    "starter": _starter,
    "pauses": _pauses,
    "bargein": _bargein,
    "noise": _noise,
    "additions": _additions,
}


def _clip(
    take: _Take,
    utterance: Utterance,
    asked: Sentence,
    pauses: Mapping[int, float] | None = None,
    noise: Pcm | None = None,
    snr_db: float = 0.0,
) -> Clip:
    """What is asked, in a quiet room to which `noise` comes, as long as a background is."""
    lead, dbfs = samples(take.uniform(LEAD_MS)), take.uniform(SPEECH_DBFS)
    sound, said = place(utterance, asked, pauses or {}, lead, dbfs)
    return _in_room(take, sound, said, noise, snr_db)


def _in_room(
    take: _Take, sound: Pcm, said: Said, noise: Pcm | None = None, snr_db: float = 0.0
) -> Clip:
    background = room(take.rng, BACKGROUND_S * SPEECH_RATE)
    if noise is not None:
        speaking = slice(said.start, said.end)
        ratio = rms(sound[speaking]) / rms(np.resize(noise, len(sound))[speaking])
        background += noise * np.float32(ratio * 10 ** (-snr_db / 20))
    sound = np.concatenate((sound, silence(samples(TAIL_MS))))
    pcm = sound + np.resize(background, len(sound))
    return Clip(f"{take.name}-{take.index:03}", pcm, background, said, take.voice)
