"""The suites of the lab: synthetic recordings whose words, pauses and noise are known.

    pauses     questions with one or two silences of 200 to 700 ms between words
    bargein    questions with long answers, and a sound of the user while the reply plays
    noise      questions among talkers, in hum or in hiss, at 20, 10 and 5 dB
    additions  questions that go on after a silence, most with words that do not change the answer

Clips are drawn in the same way as those of voiceloop.bench.suites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice, product
from typing import get_args

import numpy as np

from lab.conversations.clips import Interruption, InterruptionKind, LabClip, NoiseKind
from lab.conversations.sentences import (
    ADDITIONS,
    BACKCHANNELS,
    INTERRUPTIONS,
    LONG_ANSWERS,
    QUESTIONS,
    Sentence,
    sentence,
)
from lab.conversations.sounds import babble, cough, hiss, hum, throat_clearing
from lab.conversations.utterances import Utterance, place, speak
from voiceloop.audio.frames import SPEECH_RATE, samples
from voiceloop.bench.clips import audible, rms
from voiceloop.bench.suites import (
    BACKGROUND_S,
    LEAD_MS,
    SPEECH_DBFS,
    Drawn,
    Line,
    draw_voice,
    in_room,
)
from voiceloop.types import Pcm

PAUSE_MS = (200.0, 700.0)
DELAY_MS = (400.0, 1500.0)
"""Bounds of the time from the first audible sample of a reply to that of an interruption."""
COUGH_PEAK = (0.3, 0.6)
"""Bounds of the amplitude of a cough's loudest sample."""
SNR_DB = (20.0, 10.0, 5.0)
TALKERS, TABLES = 10, 4
"""Number of voices in a babble, and how many copies of each are mixed. That many talkers sound like
a canteen, which a VAD does not take for one voice."""

_Plan = tuple[list[Line], Callable[[list[Utterance]], LabClip]]
"""The lines that a clip needs, and a function that makes the clip from their utterances."""


def build(name: str, count: int, seed: int = 0) -> tuple[LabClip, ...]:
    """Make the first `count` clips of a suite; raises EngineError without a working espeak-ng."""
    plans = [RECIPES[name](Drawn.of(name, index, seed)) for index in range(count)]
    spoken = iter(speak([line for lines, _ in plans for line in lines]))
    return tuple(make(list(islice(spoken, len(lines)))) for lines, make in plans)


def _pauses(drawn: Drawn) -> _Plan:
    question = drawn.pick(QUESTIONS)

    def make(spoken: list[Utterance]) -> LabClip:
        places = [word for word, distinct in enumerate(spoken[0].distinct) if word and distinct]
        count = min(len(places), drawn.rng.integers(1, 3))
        chosen = drawn.rng.choice(places, count, replace=False)
        return _clip(
            drawn, spoken[0], question, {int(word): drawn.uniform(PAUSE_MS) for word in chosen}
        )

    return [drawn.line(question.text)], make


def _bargein(drawn: Drawn) -> _Plan:
    """Plan a clip with an interruption. The kinds take turns: words, a backchannel, a cough. Every
    other cough is a cleared throat."""
    question = drawn.pick(LONG_ANSWERS)
    kind = get_args(InterruptionKind)[drawn.index % 3]
    pool = {"words": INTERRUPTIONS, "backchannel": BACKCHANNELS}.get(kind)
    text = drawn.pick(pool, every=3) if pool else ""
    clearing = not text and drawn.index // 3 % 2 == 1

    def make(spoken: list[Utterance]) -> LabClip:
        clip = _clip(drawn, spoken[0], question)
        voiced: int | None = 0
        if text:
            pcm, _ = place(spoken[1], sentence(text), {}, 0, drawn.uniform(SPEECH_DBFS))
        else:
            pcm, voiced = (throat_clearing if clearing else cough)(drawn.rng)
            pcm *= np.float32(drawn.uniform(COUGH_PEAK))
        start, end = audible(pcm)
        voiced = None if voiced is None else max(start, voiced)
        delay_ms = drawn.uniform(DELAY_MS)
        sound = Interruption(kind, text, pcm, start, end, delay_ms, voiced)
        return replace(clip, interruption=sound)

    return [drawn.line(one) for one in (question.text, text) if one], make


def _noise(drawn: Drawn) -> _Plan:
    """Plan a clip with noise. The clips take turns through every kind of noise at every level."""
    question = drawn.pick(QUESTIONS)
    kinds: tuple[NoiseKind, ...] = get_args(NoiseKind)
    kind, snr_db = list(product(kinds, SNR_DB))[drawn.index % (len(kinds) * len(SNR_DB))]
    crowd = [
        Line(QUESTIONS[drawn.rng.integers(len(QUESTIONS))].text, *draw_voice(drawn.rng))
        for _ in range(TALKERS if kind == "babble" else 0)
    ]

    def make(spoken: list[Utterance]) -> LabClip:
        length = BACKGROUND_S * SPEECH_RATE
        match kind:
            case "babble":
                talkers = [utterance.pcm for utterance in spoken[1:]]
                noise = babble(drawn.rng, length, 0, talkers * TABLES)
            case "hum":
                noise = hum(drawn.rng, length, 0)
            case "hiss":
                noise = hiss(drawn.rng, length, 0)
        return replace(
            _clip(drawn, spoken[0], question, {}, noise, snr_db), noise=kind, snr_db=snr_db
        )

    return [drawn.line(question.text), *crowd], make


def _additions(drawn: Drawn) -> _Plan:
    addition = drawn.pick(ADDITIONS)
    question = addition.sentence
    pause = {question.standings.index("whole") + 1: drawn.uniform(PAUSE_MS)}

    def make(spoken: list[Utterance]) -> LabClip:
        return replace(_clip(drawn, spoken[0], question, pause), addition=addition)

    return [drawn.line(question.text)], make


RECIPES: Mapping[str, Callable[[Drawn], _Plan]] = {
    "pauses": _pauses,
    "bargein": _bargein,
    "noise": _noise,
    "additions": _additions,
}


def _clip(
    drawn: Drawn,
    utterance: Utterance,
    question: Sentence,
    pauses: Mapping[int, float] | None = None,
    noise: Pcm | None = None,
    snr_db: float = 0.0,
) -> LabClip:
    """Make a clip of `utterance` in a quiet room. `noise`, as long as a background, is added."""
    lead, dbfs = samples(drawn.uniform(LEAD_MS)), drawn.uniform(SPEECH_DBFS)
    sound, said = place(utterance, question, pauses or {}, lead, dbfs)
    quiet = in_room(drawn, sound, said)
    if noise is None:
        return LabClip(quiet.name, quiet.pcm, quiet.background, said)
    speaking = slice(said.start, said.end)
    ratio = rms(sound[speaking]) / rms(np.resize(noise, len(sound))[speaking])
    louder: Pcm = noise * np.float32(ratio * 10 ** (-snr_db / 20))
    pcm = np.asarray(quiet.pcm + np.resize(louder, len(quiet.pcm)), np.float32)
    background = np.asarray(quiet.background + louder, np.float32)
    return LabClip(quiet.name, pcm, background, said)
