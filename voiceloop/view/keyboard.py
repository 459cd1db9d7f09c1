"""The keys of the terminal that a command runs in. On Windows no keys are read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Self

import anyio

if sys.platform != "win32":
    import termios
    import tty

MOST_BYTES = 64
"""Bytes that are read at once: the longest escape sequence has fewer."""


_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]?|O[@-~]?|[^\x1b])")
"""An arrow or another key that is none of ours: Esc with what comes at once behind it."""


def keys(data: bytes) -> str:
    """Return the keys among bytes that a terminal has sent together, one character each."""
    return _SEQUENCE.sub("", data.decode(errors="ignore"))


class Keyboard:
    """The keys of a terminal, which come without Enter and unseen while the context lasts."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before = termios.tcgetattr(descriptor)

    def __enter__(self) -> Self:
        self.resume()
        return self

    def __exit__(self, *error: object) -> None:
        self.pause()

    def resume(self) -> None:
        """Have each key come at once, and the terminal not show it. Ctrl-C and Ctrl-Z still are
        signals."""
        tty.setcbreak(self._descriptor, termios.TCSANOW)

    def pause(self) -> None:
        """Give the terminal its modes back."""
        with suppress(termios.error):  # its window may have been closed
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    async def pressed(self) -> AsyncGenerator[str]:
        """Yield each key that is pressed, until the terminal has gone."""
        while True:
            await anyio.wait_readable(self._descriptor)
            try:
                data = os.read(self._descriptor, MOST_BYTES)
            except OSError:  # the window was closed, which SIGHUP reports too
                return
            if not data:
                return
            for key in keys(data):
                yield key


def own_keyboard() -> Keyboard | None:
    """Return the keyboard of the terminal in whose foreground this process runs, if it has one."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        return None
    descriptor = sys.stdin.fileno()
    try:
        foreground = os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # it is not this process's terminal, so Ctrl-C would not come from it either
        return None
    return Keyboard(descriptor) if foreground else None
