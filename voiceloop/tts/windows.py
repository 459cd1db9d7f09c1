"""How the frames of a clause are cut into the windows in which they become sound."""

from __future__ import annotations

from collections.abc import Iterator

FIRST, LARGEST = 20, 160
"""Frames of the first window and of the largest: each is twice the one before. The first sounds
soon; the others cost less for their context, and are the longest that a step should take."""


def windows(
    frames: int, *, first: int = FIRST, largest: int = LARGEST
) -> Iterator[tuple[int, int]]:
    """Cut `frames` into growing windows (start, end); a last one under half a size is not cut."""
    start, size = 0, first
    while start < frames:
        end = start + size if frames - start >= 1.5 * size else frames
        yield start, end
        start, size = end, min(2 * size, largest)
