"""Inserts silences into a recording, filled with the recording's own background.

The background is made by granular synthesis: pieces of the recording's quietest places overlap in
random order, each fading into the next. The squares of their windows sum to one, so that noise
keeps its power. Fades of the same shape join it to the speech. Samples are at 16 kHz. This module
knows nothing of words and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from voiceloop.audio.frames import dbfs, levels, samples, silence
from voiceloop.bench.clips import Rng, at_level
from voiceloop.types import Pcm

GRAIN_MS = 80
"""Length of a piece of background. Each piece overlaps half of the next."""
STEP_MS = 10
"""Distance between the pieces that are compared, and length over which their level is measured."""
GRAINS = 24
"""Maximum number of pieces that are used; the quietest are taken."""
ALIKE_DB = 6.0
"""Maximum level of a piece that is used, in dB above the quietest piece."""
NO_ROOM_DBFS = -80.0
"""Minimum level of every step of a piece. A quieter step is not the sound of a room: it comes from
the edge of a file that a codec has changed."""
FADE_MS = 10
"""Length of a fade between speech and background."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A silence to be put into a recording."""

    at: int
    """Index of the sample before which the gap is inserted; the recording's length appends the
    gap."""
    length: int
    """Number of samples with background alone, without the fades of the speech around them."""


def background(pcm: Pcm, rng: Rng, count: int) -> Pcm:
    """Make `count` samples of the background of `pcm` that repeat without a seam.

    `count` must be a whole number of half pieces, and `pcm` at least as long as a piece.
    """
    size, half = samples(GRAIN_MS), samples(GRAIN_MS) // 2
    assert count % half == 0 and len(pcm) >= size
    step = samples(STEP_MS)
    every = [pcm[at : at + size] for at in range(0, len(pcm) - size + 1, step)]
    alive = [piece for piece in every if levels(piece, step).min() > NO_ROOM_DBFS] or every
    quietest = min(map(dbfs, alive))
    pieces = sorted((one for one in alive if dbfs(one) <= quietest + ALIKE_DB), key=dbfs)[:GRAINS]
    level = float(np.median([dbfs(piece) for piece in pieces]))
    window = np.sin(np.pi * (np.arange(size) + 0.5) / size)
    made = np.zeros(count + half)
    for at in range(0, count, half):
        piece = pieces[rng.integers(len(pieces))]
        if np.any(piece):
            made[at : at + size] += at_level(piece, level) * window
    made[:half] += made[count:]
    return np.asarray(made[:count], np.float32)


def insert(pcm: Pcm, gaps: Sequence[Gap], background: Pcm) -> Pcm:
    """Insert `gaps` into `pcm` and fill them with `background`.

    The gaps must be in order and further apart than two fades. The background begins with the
    result, is repeated, and is silent during speech. So it can go on after the end without a seam.
    """
    fade = samples(FADE_MS)
    rise = np.sin(np.pi / 2 * (np.arange(fade) + 0.5) / fade).astype(np.float32)
    bounds = [0, *(gap.at for gap in gaps), len(pcm)]
    lengths = [0, *(gap.length for gap in gaps)]
    parts: list[Pcm] = []
    gain: list[Pcm] = []
    for index, (first, last) in enumerate(pairwise(bounds)):
        part, quiet = pcm[first:last].copy(), silence(last - first)
        if len(part) and index:  # a gap comes before this part
            part[:fade] *= rise[: len(part)]
            quiet[:fade] = rise[::-1][: len(part)]
        if len(part) and index < len(gaps):  # a gap comes after it
            part[-fade:] *= rise[::-1][-len(part) :]
            quiet[-fade:] = rise[-len(part) :]
        parts += [silence(lengths[index]), part]
        gain += [np.ones(lengths[index], np.float32), quiet]
    sound = np.concatenate(parts)
    sound += np.concatenate(gain) * np.resize(background, len(sound))
    return sound
