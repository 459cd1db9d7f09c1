"""Speech of which every word's time is known, spoken by the project's own espeak-ng.

The synthesizer carries the phase of its pitch from one utterance to the next, so what it says
depends on all that it has said before. Suites have to be the same in every run: they are spoken in
a process that has said nothing yet. This module knows neither suites nor backgrounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context

import numpy as np

from voiceloop.audio.frames import SPEECH_RATE, Resampler, fade_in, fade_out, samples, silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.bench.clips import Pause, Said, TimedWord
from voiceloop.bench.sentences import Sentence
from voiceloop.bench.sounds import Rng, at_level
from voiceloop.processes import deaf_to_ctrl_c, end_in_silence
from voiceloop.tts.espeak import Espeak
from voiceloop.types import Clause, Pcm, Span

VOICES = (
    *("en-us", "en", "en-gb-x-rp", "en-gb-scotland", "en-029", "en-gb-x-gbclan"),
    *("en-us+m3", "en-us+f4", "en-us+Annie", "en+david", "en-gb-x-rp+f4", "en-gb-scotland+m2"),
)
"""Accents and variants that the starter recogniser was trained on.

Variants with breath are not among them: espeak-ng draws it at random, unseeded.
"""
SLOWEST, FASTEST = 0.85, 1.1
"""Range of their speeds."""

FADE_MS = 3
"""Of both edges of a phrase, which may begin or end in the middle of a sound."""
MARGIN_MS = 5
"""What is kept of the sound below what is audible, on both sides of a phrase."""
SEEK_MS = 15
"""How far from a word's beginning the quietest place for a cut is looked for."""
QUIET_MS = 2
"""Length over which that is judged."""


def draw_voice(rng: Rng, voices: Sequence[str] = VOICES) -> tuple[str, float]:
    """A voice and its speed."""
    return voices[int(rng.integers(len(voices)))], float(rng.uniform(SLOWEST, FASTEST))


@dataclass(frozen=True, slots=True)
class Line:
    """A text and who says it."""

    text: str
    voice: str
    """Its name, as the synthesizer that speaks it knows it."""
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Utterance:
    """A line as it was spoken, without silence around it."""

    text: str
    pcm: Pcm
    """At 16 kHz."""
    starts: tuple[int, ...]
    """First sample of each word."""
    distinct: tuple[bool, ...]
    """For each word, whether it begins where the synthesizer says; False where it runs the word
    together with the one before ("of the"), so that its beginning is an estimate."""


def speak(lines: Sequence[Line]) -> list[Utterance]:
    """Speak all `lines`, one after the other, in a new process; always the same samples.

    Raises ConfigError for a voice that there is not, EngineError without a working espeak-ng.
    """
    with ProcessPoolExecutor(1, get_context("spawn"), end_in_silence) as pool:
        with deaf_to_ctrl_c():
            spoken = pool.submit(_speak_here, lines)
        return spoken.result()


def _speak_here(lines: Sequence[Line]) -> list[Utterance]:
    return [_utterance(line) for line in lines]


def _utterance(line: Line) -> Utterance:
    engine = Espeak(line.voice, line.speed)
    spans = tuple(Span(word.start(), word.end(), 0) for word in re.finditer(r"\S+", line.text))
    clause = Clause(0, 0, line.text, line.text, spans, last=True)
    (chunk,) = filter(None, engine.synthesize(clause))
    starts = [word.start for word in chunk.words]
    resampler = Resampler(chunk.rate, SPEECH_RATE)
    pcm = np.concatenate((resampler.feed(chunk.pcm), resampler.flush()))
    return Utterance(
        line.text,
        pcm,
        tuple(round(start * SPEECH_RATE / chunk.rate) for start in starts),
        tuple(not _estimated(starts, spans, word) for word in range(len(starts))),
    )


def _estimated(starts: Sequence[int], spans: Sequence[Span], word: int) -> bool:
    """Whether a word's beginning was only put between its neighbours', by their length."""
    if not 0 < word < len(starts) - 1:
        return False
    around = (word - 1, word + 1)
    between = np.interp(
        spans[word].start, [spans[i].start for i in around], [starts[i] for i in around]
    )
    return starts[word] == round(float(between))


def place(
    utterance: Utterance, sentence: Sentence, pauses: Mapping[int, float], lead: int, dbfs: float
) -> tuple[Pcm, Said]:
    """`utterance` at a level of `dbfs` after `lead` samples of nothing, and what is true of it.

    `pauses` are milliseconds, 10 or more, by the number of words before them. There the sound is
    cut at its quietest place, both sides are faded, and nothing is audible for just that long.
    """
    pcm = at_level(utterance.pcm, dbfs)
    margin = samples(MARGIN_MS)
    breaks = sorted(pauses)
    bounds = [0, *utterance.starts[1:], len(pcm)]
    for word in breaks:
        bounds[word] = _quietest(pcm, bounds[word])
    parts, times, silences = (
        [silence(max(0, lead - margin))],
        list[tuple[int, int]](),
        list[Pause](),
    )
    at = len(parts[0])
    for first, last in pairwise([0, *breaks, len(utterance.starts)]):
        if first:
            gap = samples(pauses[first])
            start = times[-1][1]
            prefix, standing = sentence.prefix(first), sentence.standings[first - 1]
            silences.append(Pause(first, prefix, standing, start, start + gap))
            parts.append(silence(gap - 2 * margin))
            at += gap - 2 * margin
        phrase, within = _phrase(pcm, bounds[first : last + 1])
        parts.append(phrase)
        times += [(at + start, at + end) for start, end in within]
        at += len(phrase)
    timed = tuple(TimedWord(word, *time) for word, time in zip(sentence.words, times, strict=True))
    said = Said(sentence.text, timed, times[0][0], times[-1][1], tuple(silences))
    return np.concatenate(parts), said


def audible(pcm: Pcm) -> tuple[int, int]:
    """The first audible sample of `pcm`, and the one after the last; there must be one."""
    loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
    return int(loud[0]), int(loud[-1]) + 1


def _quietest(pcm: Pcm, near: int) -> int:
    """The middle of the quietest stretch around sample `near`."""
    length, reach = samples(QUIET_MS), samples(SEEK_MS)
    first = max(0, near - reach)
    power = np.square(pcm[first : near + reach], dtype=np.float64)
    return first + int(np.argmin(np.convolve(power, np.ones(length), "valid"))) + length // 2


def _phrase(pcm: Pcm, bounds: Sequence[int]) -> tuple[Pcm, list[tuple[int, int]]]:
    """The audible part of the words between `bounds` with a margin at both sides, and their times.

    The phrase begins at the first of the bounds and ends at the last.
    """
    margin, fade = samples(MARGIN_MS), samples(FADE_MS)
    sound = fade_out(fade_in(pcm[bounds[0] : bounds[-1]], fade), fade)
    begin, end = audible(sound)
    padded = np.concatenate((silence(margin), sound, silence(margin)))[begin : end + 2 * margin]
    loud = np.flatnonzero(np.abs(padded) >= AUDIBLE)
    edges = np.searchsorted(loud, [bound - bounds[0] - begin + margin for bound in bounds])
    times = [(int(loud[first]), int(loud[last - 1]) + 1) for first, last in pairwise(edges)]
    return padded, times
