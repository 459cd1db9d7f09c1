"""Read the keys of the terminal that a command runs in. On Windows no keys are read. A shell may
stop the process with Ctrl-Z, and continue it later.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Protocol, Self

import anyio

if sys.platform != "win32":
    import termios
    import tty

MOST_BYTES = 64
"""Maximum number of bytes that are read at once. The longest escape sequence is shorter."""


_SEQUENCE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]?|O[@-~]?|[^\x1b])")
"""Matches the sequence of an arrow key or of another key that no command uses: Esc, and the
characters that follow it at once."""


def keys(text: str) -> str:
    """Return the keys, one character each, in the text that a terminal has sent at once. Arrow
    keys and other special keys are left out."""
    return _SEQUENCE.sub("", text)


class Keyboard:
    """The keyboard of a terminal. While the context lasts, keys arrive without Enter and are not
    shown."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before = termios.tcgetattr(descriptor)

    def __enter__(self) -> Self:
        self.resume()
        return self

    def __exit__(self, *error: object) -> None:
        self.pause()

    def resume(self) -> None:
        """Make the terminal send each key at once and not show it. Ctrl-C and Ctrl-Z still send
        signals."""
        tty.setcbreak(self._descriptor, termios.TCSANOW)

    def pause(self) -> None:
        """Restore the modes that the terminal had before."""
        with suppress(termios.error):  # its window may have been closed
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    async def pressed(self) -> AsyncGenerator[str]:
        """Yield each key that is pressed, until the terminal has gone."""
        decoder = getincrementaldecoder("utf-8")(errors="ignore")
        while True:
            await anyio.wait_readable(self._descriptor)
            try:
                data = os.read(self._descriptor, MOST_BYTES)
            except OSError:  # the window was closed, which SIGHUP reports too
                return
            if not data:
                return
            for key in keys(decoder.decode(data)):
                yield key


def own_keyboard() -> Keyboard | None:
    """Return the keyboard of this process's terminal. None without a terminal, in the background of
    a terminal, and on Windows."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        return None
    descriptor = sys.stdin.fileno()
    try:
        foreground = os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # the terminal does not control this process, and would not send it Ctrl-C
        return None
    return Keyboard(descriptor) if foreground else None


class Pausable(Protocol):
    """An object that uses the terminal, and leaves it to the shell while the process is stopped."""

    def pause(self) -> None:
        """Stop using the terminal, and restore the state that it had before."""
        ...

    def resume(self) -> None:
        """Use the terminal again. Other programs may have written on it meanwhile."""
        ...


async def follow_job_control(*uses: Pausable) -> None:
    """Pause all `uses` of the terminal before Ctrl-Z stops the process. Resume them when the
    process continues."""
    if sys.platform == "win32":
        return
    with anyio.open_signal_receiver(signal.SIGTSTP, signal.SIGCONT) as coming:
        async for number in coming:
            if number == signal.SIGTSTP:
                for use in uses:
                    use.pause()
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                for use in uses:
                    use.resume()
