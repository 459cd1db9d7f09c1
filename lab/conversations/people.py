"""Recordings of people as a suite: each as it is, and with silences between its words.

The word times and silences of a recording are not known. So before any session hears it, the
recogniser (with full windows) finds its words, an aligner finds their times, and the voice detector
finds the silences and the end of speech. A silence is inserted at the quietest place near a
boundary of two words where the speaker makes no pause. It is made of the recording's own
background. The standing of the words before it follows from the punctuation after them: in the text
beside the recording if there is one, otherwise in the recogniser's transcript.
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from lab.conversations.alignment import Align, aligner
from lab.conversations.clips import LabClip, Pause, PausedSaid
from lab.conversations.gaps import Gap, background, insert
from lab.conversations.sentences import Standing
from lab.conversations.suites import PAUSE_MS
from voiceloop.asr.transcript import normalise
from voiceloop.asr.turns import (
    SilenceLasts,
    SpeechDetector,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnEnded,
)
from voiceloop.assembly.loading import load_asr, load_vad
from voiceloop.audio.frames import SPEECH_RATE, Framer, dbfs, samples, silence
from voiceloop.bench.asr import full_windows
from voiceloop.bench.clips import Clip, Rng
from voiceloop.bench.suites import BACKGROUND_S, LEAD_MS, TAIL_MS, read_folder
from voiceloop.engines import Asr, AsrRequest, Vad
from voiceloop.errors import AudioError
from voiceloop.languages import bare
from voiceloop.settings.config import Config, TurnConfig
from voiceloop.types import Pcm

PAUSES = 200
"""Number of inserted silences over all clips."""
OWN_MS = 200
"""Least length of a speaker's silence that counts as a pause."""
SEARCH_MS, QUIET_MS = 40, 40
"""How far around a boundary the quietest place is searched, and the length of such a place."""
APART_MS = 500
"""Least distance between two inserted silences of one clip."""
WHOLE = TurnConfig(endpoint="fixed", hangover_ms=60_000, pause_below=0, max_turn_s=3600)
"""With these settings a recording is one turn, whatever its pauses."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place between two words."""

    words: int
    """Number of words before it."""
    at: int
    """The quietest sample near it."""
    prefix: str
    """The words before it, as the recogniser writes them, without the punctuation at their end."""
    standing: Standing
    """The standing of `prefix`: `whole` at the end of a sentence, `open` at a comma or the like."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A recording, with its speech and its word boundaries. Positions are samples of it."""

    clip: Clip
    start: int
    end: int
    """The sample after the last one of speech."""
    silences: tuple[tuple[int, int], ...]
    """Where nothing is said, between `start` and `end`."""
    boundaries: tuple[Boundary, ...]


def build(folder: Path, config: Config, seed: int) -> tuple[LabClip, ...]:
    """Make the suite of the recordings in `folder`: all of them as they are, then with silences.

    Raises AudioError as `read_folder` does, and for a recording that has no speech or is longer
    than the recogniser's window. Raises MissingExtra if there is no aligner.
    """
    recordings = read_folder(folder)
    align = aligner()
    asr, vad = load_asr(full_windows(config)), load_vad(config)
    return arrange([find(recording, asr, align, vad) for recording in recordings], seed)


def find(clip: Clip, asr: Asr, align: Align, vad: Vad) -> Spoken:
    """Find the speech in a recording and the boundaries of its words. Raises AudioError."""
    if len(clip.pcm) > asr.max_window_s * SPEECH_RATE:
        raise AudioError(
            f"{clip.name} is longer than the {asr.max_window_s:g} s that are recognised at once",
            "cut it into single turns",
        )
    start, end, silences = speech(clip, vad)
    words = [word.text for word in asr.transcribe(AsrRequest(clip.pcm))]
    marked, places = _marked(words, clip.said.text), align(clip.pcm, words)
    boundaries = tuple(
        Boundary(
            count,
            _quietest(clip.pcm, before[1], after[0]),
            bare(" ".join(marked[:count])),
            _standing(marked[count - 1]),
        )
        for count, (before, after) in enumerate(pairwise(places), start=1)
        if before and after
    )
    own = [silent for silent in silences if is_pause(silent)]
    free = tuple(
        one
        for one in boundaries
        if start < one.at < end and not any(begin <= one.at <= until for begin, until in own)
    )
    return Spoken(clip, start, end, silences, free)


def arrange(recordings: Sequence[Spoken], seed: int, pauses: int = PAUSES) -> tuple[LabClip, ...]:
    """Return each recording as it is, then clips with one or two silences, `pauses` in all.

    The boundaries are used in a random order, each once before any is used again.
    """
    rng = np.random.default_rng((seed, zlib.crc32(b"people")))
    clips = [_clip(one, (), rng, one.clip.name) for one in recordings]
    for number, (spoken, chosen) in enumerate(_cuts(recordings, rng)):
        if not pauses:
            break
        chosen = chosen[:pauses]
        pauses -= len(chosen)
        clips.append(_clip(spoken, chosen, rng, f"{spoken.clip.name}-{number:03}"))
    return tuple(clips)


def _cuts(recordings: Sequence[Spoken], rng: Rng) -> Iterator[tuple[Spoken, list[Boundary]]]:
    """Yield recordings without end, each with one or two of its boundaries."""
    while any(one.boundaries for one in recordings):
        drawn: list[tuple[Spoken, list[Boundary]]] = []
        for spoken in recordings:
            order: list[int] = rng.permutation(len(spoken.boundaries)).tolist()
            left = [spoken.boundaries[at] for at in order]
            while left:
                first = left.pop()
                far = [one for one in left if abs(one.at - first.at) >= samples(APART_MS)]
                second = far[:1] if rng.integers(2) else []
                left = [one for one in left if one not in second]
                drawn.append((spoken, sorted([first, *second], key=lambda one: one.at)))
        order = rng.permutation(len(drawn)).tolist()
        yield from (drawn[at] for at in order)


def _clip(spoken: Spoken, chosen: Sequence[Boundary], rng: Rng, name: str) -> LabClip:
    """Make a clip with silences at the `chosen` boundaries and background on both sides."""
    pcm = spoken.clip.pcm
    around = background(pcm, rng, BACKGROUND_S * SPEECH_RATE)
    lead = Gap(0, samples(float(rng.uniform(*LEAD_MS))))
    gaps = [Gap(one.at, samples(float(rng.uniform(*PAUSE_MS)))) for one in chosen]
    sound = insert(pcm, [lead, *gaps, Gap(len(pcm), samples(TAIL_MS))], around)
    pauses: list[Pause] = []
    shift = lead.length
    for one, gap in zip(chosen, gaps, strict=True):
        # A silence of the speaker at this place becomes part of the pause.
        start, end = next(
            (silent for silent in spoken.silences if silent[0] <= one.at <= silent[1]),
            (one.at, one.at),
        )
        start, end = start + shift, end + shift + gap.length
        pauses.append(Pause(one.words, one.prefix, one.standing, start, end))
        shift += gap.length
    own = (
        ()
        if chosen
        else tuple((start + shift, end + shift) for start, end in filter(is_pause, spoken.silences))
    )
    start, end = spoken.start + lead.length, spoken.end + shift
    said = PausedSaid(spoken.clip.said.text, start, end, pauses=tuple(pauses), own_pauses=own)
    return LabClip(name, sound, around, said)


def is_pause(silence: tuple[int, int]) -> bool:
    """Tell whether a silence counts as one of the speaker's pauses."""
    return silence[1] - silence[0] >= samples(OWN_MS)


def speech(clip: Clip, vad: Vad) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    """Find the first sample of speech, the one after the last, and the silences between."""
    detector, framer = SpeechDetector(WHOLE, ends=True), Framer(SPEECH_RATE, vad.frame)
    vad.reset()
    events = [
        event
        for pcm in (clip.pcm, silence(vad.frame - 1))  # the last window is filled up
        for frame in framer.feed(pcm)
        for event in detector.feed(frame, vad.probability(frame.pcm))
    ]
    start, end, paused = None, 0, 0
    silences: list[tuple[int, int]] = []
    for event in (*events, *detector.flush()):
        match event:
            case SpeechStarted():
                start = event.speech_start
            case SpeechPaused():
                paused = event.speech_end
            case SpeechResumed():
                silences.append((paused, event.speech_start))
            case TurnEnded():
                end = min(event.speech_end, len(clip.pcm))
            case SilenceLasts():
                pass
    if start is None:
        raise AudioError(f"nobody speaks in {clip.name}", "leave it out, or record it louder")
    return start, end, tuple(silences)


def _quietest(pcm: Pcm, end: int, start: int) -> int:
    """Return the middle of the quietest stretch between one word's `end` and the next's `start`."""
    size, reach = samples(QUIET_MS), samples(SEARCH_MS)
    last = len(pcm) - size
    first = min(last, max(0, end - reach - size // 2))
    places = range(first, max(first, min(last, start + reach - size // 2)) + 1, size // 4)
    return min(places, key=lambda at: dbfs(pcm[at : at + size])) + size // 2


def _marked(heard: Sequence[str], text: str | None) -> list[str]:
    """Return the `heard` words. A word that `text` has at the same place gets the spelling and the
    punctuation of `text`."""
    marked, written = list(heard), (text or "").split()
    found = difflib.SequenceMatcher(
        None, [*map(normalise, heard)], [*map(normalise, written)], autojunk=False
    )
    for block in found.get_matching_blocks():
        for at in range(block.size):
            marked[block.a + at] = written[block.b + at]
    return marked


def _standing(word: str) -> Standing:
    """Return the standing of a text that ends with `word`, by its punctuation alone."""
    if word.endswith((".", "?", "!", "…")):
        return "whole"
    return "open" if word.endswith((",", ";", ":", "-", "\u2013", "\u2014")) else "incomplete"
