"""Shows the progress of a measurement: on one line of a terminal, or in a few lines of a log."""

from __future__ import annotations

from time import perf_counter
from typing import TextIO

PAUSE_S = 10.0
"""Minimum seconds between two lines, if the stream is no terminal."""


class Progress:
    """A callable that shows progress. As a context manager, it clears the line at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = -PAUSE_S

    def __call__(self, text: str) -> None:
        """Show `text`. On a terminal it replaces the text before it; elsewhere it is left out if
        the last one is less than `PAUSE_S` old."""
        if self._stream.isatty():
            self._write(f"\r\x1b[K{text}")
        elif perf_counter() - self._shown >= PAUSE_S:
            self._shown = perf_counter()
            self._write(f"{text}\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream.isatty():
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
