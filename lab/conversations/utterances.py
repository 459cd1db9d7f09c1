"""Speech with known word times, spoken by the project's own espeak-ng."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lab.conversations.clips import Pause, PausedSaid, TimedWord
from lab.conversations.sentences import Sentence
from voiceloop.audio.frames import SPEECH_RATE, fade_in, fade_out, samples, silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.bench.clips import at_level, audible
from voiceloop.bench.suites import FADE_MS, MARGIN_MS, Line, by_espeak, resampled
from voiceloop.types import Pcm, Span, SpeechChunk

SEEK_MS = 15
"""How far from a word's beginning the quietest place for a cut is searched."""
QUIET_MS = 2
"""Length of the stretches whose power is compared to find the quietest place."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """A line as it was spoken, without silence around it."""

    text: str
    pcm: Pcm
    """At 16 kHz."""
    starts: tuple[int, ...]
    """First sample of each word."""
    distinct: tuple[bool, ...]
    """For each word, True if the synthesizer reports its beginning. False if it runs the word
    together with the one before ("of the"), so that its beginning is an estimate."""


def speak(lines: Sequence[Line]) -> list[Utterance]:
    """Speak all `lines` with espeak-ng. Raises what `by_espeak` raises."""
    made = zip(lines, by_espeak(lines), strict=True)
    return [_utterance(line.text, chunk) for line, chunk in made]


def _utterance(text: str, chunk: SpeechChunk) -> Utterance:
    spans = tuple(Span(word.start(), word.end(), 0) for word in re.finditer(r"\S+", text))
    starts = [word.start for word in chunk.words]
    return Utterance(
        text,
        resampled(chunk.pcm, chunk.rate),
        tuple(round(start * SPEECH_RATE / chunk.rate) for start in starts),
        tuple(not _estimated(starts, spans, word) for word in range(len(starts))),
    )


def _estimated(starts: Sequence[int], spans: Sequence[Span], word: int) -> bool:
    """Return whether a word's beginning was only interpolated between those of its neighbours."""
    if not 0 < word < len(starts) - 1:
        return False
    around = (word - 1, word + 1)
    between = np.interp(
        spans[word].start, [spans[i].start for i in around], [starts[i] for i in around]
    )
    return starts[word] == round(float(between))


def place(
    utterance: Utterance, sentence: Sentence, pauses: Mapping[int, float], lead: int, dbfs: float
) -> tuple[Pcm, PausedSaid]:
    """Return `utterance` at the level `dbfs` after `lead` silent samples, with its words and
    pauses.

    `pauses` has the milliseconds of each pause, 10 or more, by the number of words before it. At a
    pause the sound is cut at its quietest place, both sides are faded, and nothing is audible for
    exactly that time.
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
    said = PausedSaid(sentence.text, times[0][0], times[-1][1], timed, tuple(silences))
    return np.concatenate(parts), said


def _quietest(pcm: Pcm, near: int) -> int:
    """Return the middle of the quietest stretch around sample `near`."""
    length, reach = samples(QUIET_MS), samples(SEEK_MS)
    first = max(0, near - reach)
    power = np.square(pcm[first : near + reach], dtype=np.float64)
    return first + int(np.argmin(np.convolve(power, np.ones(length), "valid"))) + length // 2


def _phrase(pcm: Pcm, bounds: Sequence[int]) -> tuple[Pcm, list[tuple[int, int]]]:
    """Cut a phrase out of `pcm`: its audible part with a margin on both sides, and its word times.

    `bounds` are the samples at which the words begin, and the one at which the last word ends.
    """
    margin, fade = samples(MARGIN_MS), samples(FADE_MS)
    sound = fade_out(fade_in(pcm[bounds[0] : bounds[-1]], fade), fade)
    begin, end = audible(sound)
    padded = np.concatenate((silence(margin), sound, silence(margin)))[begin : end + 2 * margin]
    loud = np.flatnonzero(np.abs(padded) >= AUDIBLE)
    edges = np.searchsorted(loud, [bound - bounds[0] - begin + margin for bound in bounds])
    times = [(int(loud[first]), int(loud[last - 1]) + 1) for first, last in pairwise(edges)]
    return padded, times
