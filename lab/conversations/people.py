"""Recordings of people as a suite: each as it is, and with silences put between its words.

Nobody has written down when the words of a recording are spoken and where it is silent. So the
recogniser tells the words, from its full window, an aligner where each of them is, and the voice
detector the silences and the end of speech, all before any session hears it. A silence is put into
the quietest place near the boundary of two words at which the speaker makes no pause, and is made
of the recording's own background.
Whether the words before it may have been all is told by the punctuation behind them: of the text
where there is one beside the recording, else the recogniser's.
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
from voiceloop.asr.agreement import normalise
from voiceloop.asr.turns import (
    SilenceLasts,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnDetector,
    TurnEnded,
)
from voiceloop.audio.frames import SPEECH_RATE, Framer, dbfs, samples, silence
from voiceloop.bench.asr import full_windows
from voiceloop.bench.background import Rng
from voiceloop.bench.clips import Clip
from voiceloop.bench.recordings import BACKGROUND_S, read_folder
from voiceloop.bench.suites import LEAD_MS, TAIL_MS
from voiceloop.calibration.probability import bare
from voiceloop.config import Config, TurnConfig
from voiceloop.engines import Asr, AsrRequest, Vad
from voiceloop.errors import AudioError
from voiceloop.loading import load_asr, load_vad
from voiceloop.types import Pcm

PAUSES = 200
"""Silences that are put in, over all clips."""
OWN_MS = 200
"""A silence that the speaker made counts as a pause from this length on."""
SEARCH_MS, QUIET_MS = 40, 40
"""How far around a boundary the quietest place is looked for, and the length that is judged."""
APART_MS = 500
"""Between two places for silences in one clip, at the least."""
WHOLE = TurnConfig(endpoint="fixed", hangover_ms=60_000, pause_below=0, max_turn_s=3600)
"""With these settings a recording is one turn, whatever its pauses."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place between two words."""

    words: int
    """Words before it."""
    at: int
    """The quietest sample near it."""
    prefix: str
    """The words before it, as the recogniser writes them, without the punctuation at their end."""
    standing: Standing
    """By the punctuation: `whole` behind a sentence, `open` behind a comma or its like."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A recording and what was found in it. Positions are its samples."""

    clip: Clip
    start: int
    end: int
    """The sample after the last one of speech."""
    silences: tuple[tuple[int, int], ...]
    """Where nothing is said, between `start` and `end`."""
    boundaries: tuple[Boundary, ...]


def build(folder: Path, config: Config, seed: int) -> tuple[LabClip, ...]:
    """The suite of the recordings in `folder`: all of them as they are, and then with silences.

    Raises AudioError as `read_folder` does, and for a recording without speech or one that is
    longer than the recogniser's window; MissingExtra where there is no aligner.
    """
    recordings = read_folder(folder)
    align = aligner()
    asr, vad = load_asr(full_windows(config)), load_vad(config)
    return arrange([find(recording, asr, align, vad) for recording in recordings], seed)


def find(clip: Clip, asr: Asr, align: Align, vad: Vad) -> Spoken:
    """Where there is speech in a recording, and where its words meet."""
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
    """Each recording as it is, and then clips with one or two silences until there are `pauses`.

    The boundaries are used in a drawn order, each once before any is used again.
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
    """One or two boundaries of a recording, for as long as somebody asks."""
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
    """A recording with silences at the `chosen` boundaries, and background on both sides."""
    pcm = spoken.clip.pcm
    around = background(pcm, rng, BACKGROUND_S * SPEECH_RATE)
    lead = Gap(0, samples(float(rng.uniform(*LEAD_MS))))
    gaps = [Gap(one.at, samples(float(rng.uniform(*PAUSE_MS)))) for one in chosen]
    sound = insert(pcm, [lead, *gaps, Gap(len(pcm), samples(TAIL_MS))], around)
    pauses: list[Pause] = []
    shift = lead.length
    for one, gap in zip(chosen, gaps, strict=True):
        # Where the speaker is silent anyway, that is part of the pause.
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
    detector, framer = TurnDetector(WHOLE), Framer(SPEECH_RATE, vad.frame)
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
    """The middle of the quietest stretch between the end of a word and the start of the next."""
    size, reach = samples(QUIET_MS), samples(SEARCH_MS)
    last = len(pcm) - size
    first = min(last, max(0, end - reach - size // 2))
    places = range(first, max(first, min(last, start + reach - size // 2)) + 1, size // 4)
    return min(places, key=lambda at: dbfs(pcm[at : at + size])) + size // 2


def _marked(heard: Sequence[str], text: str | None) -> list[str]:
    """The words that were heard, with the punctuation of `text` where it has the same word."""
    marked, written = list(heard), (text or "").split()
    found = difflib.SequenceMatcher(
        None, [*map(normalise, heard)], [*map(normalise, written)], autojunk=False
    )
    for block in found.get_matching_blocks():
        for at in range(block.size):
            marked[block.a + at] = written[block.b + at]
    return marked


def _standing(word: str) -> Standing:
    """How what ends with `word` stands, by the mark behind it alone."""
    if word.endswith((".", "?", "!", "…")):
        return "whole"
    return "open" if word.endswith((",", ";", ":", "-", "\u2013", "\u2014")) else "incomplete"
