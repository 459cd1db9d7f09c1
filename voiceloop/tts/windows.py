"""Division of a clause's frames into the windows in which they are decoded."""

from __future__ import annotations

from collections.abc import Iterator

FIRST, LARGEST = 20, 160
"""Frames of the first window and of the largest. Each window has twice the frames of the one
before. A short first window sounds soon. Later ones cost less for their context, and the largest is
the longest that a step should take."""


def windows(
    frames: int, *, first: int = FIRST, largest: int = LARGEST
) -> Iterator[tuple[int, int]]:
    """Divide `frames` into growing windows (start, end). A rest of less than half a window joins
    the last one."""
    start, size = 0, first
    while start < frames:
        end = start + size if frames - start >= 1.5 * size else frames
        yield start, end
        start, size = end, min(2 * size, largest)
