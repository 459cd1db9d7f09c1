"""Division of a clause's frames into the windows in which they are decoded."""

from __future__ import annotations

from collections.abc import Iterator

FIRST, LARGEST = 20, 160
"""Frames of the first window and of the largest; each has twice the frames of the one before. A
short window sounds sooner. A long one costs less for its context, but a step should not take longer
than `LARGEST`."""


def windows(
    frames: int, *, first: int = FIRST, largest: int = LARGEST
) -> Iterator[tuple[int, int]]:
    """Divide `frames` into growing windows (start, end). The last may be longer by up to half."""
    start, size = 0, first
    while start < frames:
        end = start + size if frames - start >= 1.5 * size else frames
        yield start, end
        start, size = end, min(2 * size, largest)
