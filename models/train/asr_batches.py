"""Batches of the recogniser's examples: bucketed by length, perturbed anew at every use.

It reads the shards that exist, so training can start while others are still being made. All
randomness comes from seeded generators.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from statistics import median_low

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from models.train.asr_data import SPAN, Example, load
from models.train.asr_model import Batch, spell
from models.train.asr_tokenizer import targets


class Batches:
    """A source of batches, which prefers the examples that were used least."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, seed: int, frames: int) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.seed = seed
        self.frames = frames
        """Most frames of a batch, padding included."""
        self.examples: list[Example] = []
        self.easy: list[bool] = []
        self.noisy: list[bool] = []
        self.uses: list[int] = []
        self.files: set[Path] = set()

    def refresh(self) -> None:
        """Load the shards that have appeared since the last call."""
        for path in sorted(self.folder.glob("*.npz")):
            if path not in self.files:
                self.files.add(path)
                shard = load(path)
                easy = path.name.startswith("easy")
                self.examples.extend(shard)
                self.easy.extend([easy] * len(shard))
                floors = [floor(e) for e in shard]
                middle = np.median(floors)
                self.noisy.extend(
                    not easy and bool(e.text) and f > middle
                    for e, f in zip(shard, floors, strict=True)
                )
        # New examples start at the median, so they do not all come before the others.
        usual = median_low(self.uses or [0])
        self.uses.extend([usual] * (len(self.examples) - len(self.uses)))

    def round(self, number: int, strength: float, size: int) -> Iterator[Batch]:
        """Yield the batches of `size` examples in random order.

        `number` is part of the seed. `strength` (0 to 1) is that of the perturbation; 0 takes the
        easy examples alone. Noisy examples are drawn half as often as the rest.
        """
        self.refresh()
        rng = random.Random(f"{self.seed}-{number}")
        pool = [i for i, easy in enumerate(self.easy) if easy or strength > 0]
        order = sorted(pool, key=lambda i: self.uses[i] + rng.random() + 0.8 * self.noisy[i])[:size]
        for i in order:
            self.uses[i] += 1 + int(self.noisy[i])
        order.sort(key=lambda i: len(self.examples[i].mel) * rng.uniform(0.9, 1.1))
        groups: list[list[Example]] = [[]]
        longest = 0
        for example in (self.examples[i] for i in order):
            longest = max(longest, len(example.mel))
            if longest * (len(groups[-1]) + 1) > self.frames and groups[-1]:
                groups.append([])
                longest = len(example.mel)
            groups[-1].append(example)
        rng.shuffle(groups)
        noise = np.random.default_rng([self.seed, number])
        for group in groups:
            yield perturb(collate(group, self.tokenizer), noise, strength)


def floor(example: Example) -> float:
    """Return the noise floor: the 10th percentile of the mean level of frames, 0 to 255.

    255 is the loudest point of the example.
    """
    return float(np.percentile(example.mel[::3, ::4].mean(1), 10))


def collate(examples: list[Example], tokenizer: Tokenizer) -> Batch:
    """Pad and tokenise examples into a batch."""
    frames = [len(e.mel) for e in examples]
    mel = torch.zeros(len(examples), max(frames), 80)
    rows = [targets(tokenizer, e.text) for e in examples]
    tokens = torch.full((len(examples), max(map(len, rows))), -100)
    for i, (example, row) in enumerate(zip(examples, rows, strict=True)):
        values = torch.from_numpy(example.mel).float()
        mel[i, : frames[i]] = values * (SPAN / 255) + (example.top - SPAN)
        tokens[i, : len(row)] = torch.tensor(row)
    letters = [spell(e.text) for e in examples]
    return Batch(
        mel.transpose(1, 2).contiguous(),
        torch.tensor(frames),
        tokens,
        torch.tensor([letter for word in letters for letter in word], dtype=torch.long),
        torch.tensor([len(word) for word in letters]),
    )


def perturb(batch: Batch, rng: np.random.Generator, strength: float) -> Batch:
    """Perturb the features, so that an example differs at every use.

    Tempo, vocal tract and equaliser are shifted a little, then come the masks of SpecAugment.
    `strength` scales the share of batches with another tempo or vocal tract, the equaliser and the
    width of the masks.
    """
    mel, frames = batch.mel, batch.frames
    if rng.random() < 0.5 * strength:
        factor = rng.uniform(0.88, 1.15)
        mel = F.interpolate(mel, size=int(mel.shape[-1] * factor), mode="linear")
        frames = torch.clamp((frames * factor).long(), 1, mel.shape[-1])
    n, bands, length = mel.shape
    if rng.random() < 0.5 * strength:
        at = np.clip(np.arange(bands) * rng.uniform(0.93, 1.07) + rng.uniform(-1, 1), 0, bands - 1)
        low = np.minimum(at.astype(int), bands - 2)
        share = torch.from_numpy((at - low).astype(np.float32))[:, None]
        mel = mel[:, low] * (1 - share) + mel[:, low + 1] * share
    knots = torch.from_numpy(rng.normal(0, 0.06 * strength, (n, 1, 6)).astype(np.float32))
    mel = mel + F.interpolate(knots, size=bands, mode="linear").transpose(1, 2)
    valid = torch.arange(length) < frames[:, None]
    top = mel.masked_fill(~valid[:, None], -9).amax((1, 2), keepdim=True)
    mel = torch.maximum(mel, top - SPAN)
    hidden = torch.zeros(n, bands, length, dtype=torch.bool)
    for i in range(n):
        for _ in range(rng.integers(0, 3)):
            start, width = rng.integers(0, bands), rng.integers(0, 1 + int(13 * strength))
            hidden[i, start : start + width] = True
        for _ in range(rng.integers(0, 1 + int(frames[i]) // 60)):
            start, width = rng.integers(0, int(frames[i])), rng.integers(0, 1 + int(12 * strength))
            hidden[i, :, start : start + width] = True
    mel = torch.where(hidden, top - SPAN * 0.7, mel)
    return Batch(mel, frames, batch.tokens, batch.letters, batch.spelled)
