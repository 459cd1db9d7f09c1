"""Silences put into a recording, made of the recording's own background.

What is heard in them is cut from the recording's quietest places and laid over itself in a drawn
order, each piece fading into the next (granular synthesis with windows whose squares sum to one, so
that noise keeps its power). The same fade joins it to the speech. Samples are at 16 kHz; this
module knows nothing of words and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from voiceloop.audio.frames import dbfs, levels, samples, silence
from voiceloop.bench.background import Rng, at_level
from voiceloop.types import Pcm

GRAIN_MS = 80
"""Length of a piece of background, of which each overlaps half of the next."""
STEP_MS = 10
GRAINS = 24
"""Pieces that are used at the most: the quietest ones that there are."""
ALIKE_DB = 6.0
"""They are louder than the quietest by this at the most."""
NO_ROOM_DBFS = -80.0
"""What has a quieter step in it is the edge of a file that came through a codec, not a room."""
FADE_MS = 10
"""In which speech gives way to the background, and the other way round."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A silence to be put into a recording."""

    at: int
    """Sample of the recording before which it comes; its length puts the gap behind the end."""
    length: int
    """Samples of background alone; beside them the speech is faded within its own samples."""


def background(pcm: Pcm, rng: Rng, count: int) -> Pcm:
    """`count` samples of what is heard in `pcm` where nobody speaks; without a seam when repeated.

    `count` is a whole number of half grains, `pcm` at least as long as a grain.
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
    """`pcm` with `gaps`, in order and further apart than two fades, in which `background` is heard.

    It runs on beneath all of the result, and whoever repeats it behind the end hears no seam.
    """
    fade = samples(FADE_MS)
    rise = np.sin(np.pi / 2 * (np.arange(fade) + 0.5) / fade).astype(np.float32)
    bounds = [0, *(gap.at for gap in gaps), len(pcm)]
    lengths = [0, *(gap.length for gap in gaps)]
    parts: list[Pcm] = []
    gain: list[Pcm] = []
    for index, (first, last) in enumerate(pairwise(bounds)):
        part, quiet = pcm[first:last].copy(), silence(last - first)
        if len(part) and index:  # a gap is before it
            part[:fade] *= rise[: len(part)]
            quiet[:fade] = rise[::-1][: len(part)]
        if len(part) and index < len(gaps):  # and one behind it
            part[-fade:] *= rise[::-1][-len(part) :]
            quiet[-fade:] = rise[-len(part) :]
        parts += [silence(lengths[index]), part]
        gain += [np.ones(lengths[index], np.float32), quiet]
    sound = np.concatenate(parts)
    sound += np.concatenate(gain) * np.resize(background, len(sound))
    return sound
