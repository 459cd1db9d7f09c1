"""Divides the frames of a clause into the windows in which they are decoded."""

from __future__ import annotations

from collections.abc import Iterator

FIRST, LARGEST = 20, 160
"""Frames in the first window, and the size to which windows grow. Each window has twice the frames
of the window before it, until `LARGEST` is reached. A short window sounds sooner. A long window
needs less work for its context, but takes a longer step."""


def windows(
    frames: int, *, first: int = FIRST, largest: int = LARGEST
) -> Iterator[tuple[int, int]]:
    """Divide `frames` into growing windows (start, end). The last window may have up to 1.5 times
    the usual size, so that no short window follows."""
    start, size = 0, first
    while start < frames:
        end = start + size if frames - start >= 1.5 * size else frames
        yield start, end
        start, size = end, min(2 * size, largest)
