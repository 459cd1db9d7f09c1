"""The recogniser's examples: log-mel features and their transcripts.

A shard is a pure function of seed, kind and index. So the process that makes them can stop and
resume at any time, while training reads the shards that exist. Features are stored as bytes:
Whisper's log-mel values span exactly 2.0 below the maximum. This module knows synthesizers and
augmentation, but no model.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor
from scipy import fft

from models.train.augment import RATE, Augmenter, coloured, warp
from models.train.domain import utterance
from models.train.voices import Speech, Voice, render, training_voice, unseen_voice
from models.train.words import WORDS, salad

SHARD = 512
SPAN = 2.0  # the feature extractor clamps to this far below the maximum
LONGEST_S = 14.0
MIX = (("espeak", 0.46), ("flite", 0.30), ("festival", 0.18), ("nothing", 0.06))
EASY_VOICES = (
    ("espeak", "en-us"),
    ("espeak", "en"),
    ("espeak", "en-us+f2"),
    ("espeak", "en-us+m3"),
    ("flite", "kal16"),
    ("flite", "slt"),
)
EASY_SHARDS = 24
SPLICED_SHARDS = 120
COMMON = {word for word in WORDS if word[0].islower()}
COPIES = {"espeak": 1, "flite": 2, "festival": 3}
"""Augmented copies of one rendering; slower synthesizers have more, each in another room."""


@dataclass(frozen=True, slots=True)
class Example:
    """Quantised features and their transcript.

    `mel` is uint8 [frames, 80]; the features are `top - SPAN + mel / 255 * SPAN`.
    """

    mel: np.ndarray
    top: float
    text: str

    @classmethod
    def of(cls, pcm: np.ndarray, text: str) -> Example:
        """Compute an example from audio, float32 mono at 16 kHz."""
        mel = features(pcm).T
        top = float(mel.max())
        return cls(np.round((mel - top + SPAN) * (255 / SPAN)).astype(np.uint8), top, text)

    def features(self) -> np.ndarray:
        """Return the features, float32 [80, frames], as faster-whisper's extractor gives them."""
        return self.mel.T.astype(np.float32) * (SPAN / 255) + (self.top - SPAN)


@cache
def _filters() -> tuple[np.ndarray, np.ndarray]:
    mel = FeatureExtractor(feature_size=80).mel_filters.astype(np.float32)
    return np.ascontiguousarray(mel.T), np.hanning(401)[:-1].astype(np.float32)


def features(pcm: np.ndarray) -> np.ndarray:
    """Compute the same as `FeatureExtractor()(pcm)[..., :-1]` in a twentieth of its time.

    The result is float32 [80, len(pcm) // 160].
    """
    filters, window = _filters()
    padded = np.pad(np.pad(pcm.astype(np.float32), (0, 160)), 200, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, 400)[::160][:-1]
    power = np.abs(fft.rfft(frames * window)) ** 2
    log = np.log10(np.maximum(power @ filters, 1e-10))
    return ((np.maximum(log, log.max() - 8.0) + 4.0) / 4.0).T[:, :-1]


def sentence(rng: random.Random) -> str:
    """Draw a sentence for a training voice."""
    return salad(rng) if rng.random() < 0.13 else utterance(rng)


def spliced(rng: random.Random) -> str:
    """Draw pieces of unrelated sentences, joined to one.

    Without these the decoder would learn the training sentences by heart, and follow the usual
    continuation instead of the sound.
    """
    words: list[str] = []
    for _ in range(rng.randint(2, 4)):
        source = utterance(rng).split()
        first = rng.randrange(len(source))
        piece = [word.strip(".,?!;:") for word in source[first : first + rng.randint(1, 4)]]
        if first == 0 and piece[0].lower() in COMMON:
            piece[0] = piece[0].lower()
        words += filter(None, piece)
    text = " ".join(words)
    return text[:1].upper() + text[1:] + rng.choice(".?")


def cut(rng: random.Random, text: str, speech: Speech) -> tuple[str, np.ndarray] | None:
    """Cut the audio at a random moment. Return the words that are finished there, and the audio.

    The words have no final mark. None if no word is missing, or if the times of words are unknown.
    """
    if speech.ends is None:
        return None
    at = rng.uniform(0.2, speech.ends[-1])
    ends = np.asarray(speech.ends)
    lengths = np.diff(ends, prepend=0.0)
    done = int(np.sum(ends - 0.12 * np.minimum(lengths, 0.6) <= at))
    if done == len(ends):
        return None
    words = " ".join(text.split()[:done])
    return words.rstrip(".,?!;:"), speech.pcm[: int(at * speech.rate)]


def examples(
    rng: random.Random, augmenter: Augmenter, sentence: Callable[[random.Random], str]
) -> Iterator[Example]:
    """Yield the copies of one random utterance, each warped, cut and augmented on its own."""
    kind = rng.choices([k for k, _ in MIX], [w / COPIES.get(k, 1) for k, w in MIX])[0]
    if kind == "nothing":
        yield Example.of(augmenter.nothing(rng.uniform(0.4, 5.0)), "")
        return
    text = sentence(rng)
    speech = render(text, training_voice(rng, kind))
    if not 0.1 < len(speech.pcm) / speech.rate < LONGEST_S or np.abs(speech.pcm).max() < 1e-3:
        return
    for _ in range(COPIES[kind]):
        pcm, heard = speech.pcm, text
        lead = rng.choice((0.0, rng.uniform(0, 0.6)))
        trail = rng.uniform(0, 0.8)
        if rng.random() < 0.27 and (partial := cut(rng, text, speech)):
            heard, pcm = partial
            trail = rng.choice((0.0, 0.0, rng.uniform(0, 0.5)))
        factor = 1.0 if rng.random() < 0.2 else float(np.exp(rng.uniform(-0.17, 0.17)))
        slow = warp(pcm, speech.rate, factor)
        yield Example.of(augmenter(slow, lead + max(0.0, 0.5 - len(slow) / RATE), trail), heard)


def easy_example(rng: random.Random, noise: np.random.Generator) -> Example:
    """Draw a whole sentence in one of a few voices in a quiet room.

    With these a fresh model makes its first progress within minutes. The full variety takes an
    hour.
    """
    text = utterance(rng)
    return Example.of(mild(noise, render(text, Voice(*rng.choice(EASY_VOICES)))), text)


def make_shard(seed: int, kind: str, index: int) -> list[Example]:
    """Make shard `index` of a kind; it always has the same examples.

    The kinds are "easy", "shard" (all variety) and "spliced" (all variety of spliced sentences).
    """
    rng = random.Random(f"{seed}-{kind}-{index}")
    noise = np.random.default_rng([seed, index, len(kind)])
    if kind == "easy":
        return [easy_example(rng, noise) for _ in range(SHARD)]
    augmenter = Augmenter(noise)
    out: list[Example] = []
    while len(out) < SHARD:
        out.extend(examples(rng, augmenter, spliced if kind == "spliced" else sentence))
    return out[:SHARD]


def save(path: Path, shard: list[Example]) -> None:
    """Write atomically: a reader sees a whole shard or none."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.savez(
            file,
            mel=np.concatenate([e.mel for e in shard]),
            lengths=np.array([len(e.mel) for e in shard], np.int32),
            tops=np.array([e.top for e in shard], np.float32),
            texts=np.array([e.text for e in shard]),
        )
    temporary.rename(path)


def load(path: Path) -> list[Example]:
    """Load the examples that `save` has written."""
    with np.load(path) as data:
        parts = np.split(data["mel"], np.cumsum(data["lengths"])[:-1])
        rows = zip(parts, data["tops"], data["texts"], strict=True)
        return [Example(mel, float(top), str(text)) for mel, top, text in rows]


def make(folder: Path, seed: int, kind: str, shards: int) -> None:
    """Fill `folder` with shards 0 .. `shards` - 1 of `kind`, skipping those that exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(shards):
        path = folder / f"{kind}-{index:05d}.npz"
        if path.exists():
            continue
        start = time.perf_counter()
        save(path, make_shard(seed, kind, index))
        each = (time.perf_counter() - start) / SHARD * 1000
        print(f"{time.strftime('%H:%M:%S')} {path.name}: {each:.1f} ms an example", flush=True)


# --- test sets: carriers and slot combinations that training never sees ------------------------


def test_sets(seed: int, size: int) -> Iterator[tuple[str, Callable[[], list[Example]]]]:
    """Yield the name of every test set and a function that makes it, always the same."""

    def clean(name: str, count: int, voice: Callable[[random.Random], Voice]) -> list[Example]:
        rng = random.Random(f"{seed}-{name}")
        noise = np.random.default_rng(seed)
        out: list[Example] = []
        while len(out) < count:
            text = utterance(rng, "heldout")
            out.append(Example.of(mild(noise, render(text, voice(rng))), text))
        return out

    def hard(name: str, count: int, partial: bool) -> list[Example]:
        rng = random.Random(f"{seed}-{name}")
        augmenter = Augmenter(np.random.default_rng(seed))
        out: list[Example] = []
        while len(out) < count:
            text = utterance(rng, "heldout")
            speech = render(text, _seen(rng))
            if not partial:
                pcm = augmenter(warp(speech.pcm, speech.rate, 1.0), 0.2, 0.3)
                out.append(Example.of(pcm, text))
            elif found := cut(rng, text, speech):
                heard = Speech(found[1], speech.rate, None)
                trail = rng.choice((0.0, 0.3))
                out.append(Example.of(mild(augmenter.rng, heard, trail), found[0]))
        return out

    def nothing() -> list[Example]:
        augmenter = Augmenter(np.random.default_rng(seed))
        return [Example.of(augmenter.nothing(1 + i % 4), "") for i in range(size * 2 // 5)]

    fifth = size // 5
    yield "seen voices", lambda: clean("seen", size, _seen)
    yield "unseen espeak", lambda: clean("unseen", size, lambda r: unseen_voice(r, "espeak"))
    yield "flite awb", lambda: clean("awb", fifth, lambda r: Voice("flite", "awb"))
    yield "festival ked", lambda: clean("ked", fifth, lambda r: Voice("festival", "ked_diphone"))
    yield "noisy rooms", lambda: hard("noisy", fifth * 2, partial=False)
    yield "cut short", lambda: hard("cut", fifth * 2, partial=True)
    yield "no speech", nothing


def _seen(rng: random.Random) -> Voice:
    return training_voice(rng, rng.choices(("espeak", "flite", "festival"), (0.6, 0.25, 0.15))[0])


def mild(rng: np.random.Generator, speech: Speech, trail: float = 0.3) -> np.ndarray:
    """Simulate a quiet room and a good microphone; `trail` seconds of silence follow."""
    pcm = warp(speech.pcm, speech.rate, 1.0)
    pcm = np.pad(pcm, (int(0.2 * RATE), int(trail * RATE))) * rng.uniform(0.3, 1.0)
    return (pcm + coloured(rng, len(pcm)) * 10 ** rng.uniform(-4, -2.7)).astype(np.float32)
