"""Division of a clause's frames into the windows in which they are decoded."""

from __future__ import annotations

from collections.abc import Iterator

FIRST, LARGEST = 20, 160
"""Frames in the first window, and the maximum in any other. Each window has twice as many as the
one before. A short window sounds sooner. A long one needs less work for its context, but a step of
more than `LARGEST` frames would take too long."""


def windows(
    frames: int, *, first: int = FIRST, largest: int = LARGEST
) -> Iterator[tuple[int, int]]:
    """Divide `frames` into growing windows (start, end). The last one may be longer by up to half,
    so that no short rest is left."""
    start, size = 0, first
    while start < frames:
        end = start + size if frames - start >= 1.5 * size else frames
        yield start, end
        start, size = end, min(2 * size, largest)
