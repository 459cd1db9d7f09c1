"""Terminals that tests look at: a screen in memory, and a process on a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from typing import Self

from rich.cells import cell_len

_COMMAND = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class TerminalText(io.StringIO):
    """A text that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class Screen:
    """What a terminal shows of the text that it is sent, and its scrollback.

    Each character takes its own cells, whatever it is joined with, as in older terminals. When the
    terminal is resized, lines that wrapped are wrapped anew, as in most terminals.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[list[str]] = [[]]
        """Characters; behind a wide one there is an empty string."""
        self._wrapped = [False]
        """Whether each row goes on in the next one."""
        self._row = self._column = 0
        self._wraps = True
        self.cursor_shown = True

    @property
    def lines(self) -> list[str]:
        """The rows as text."""
        return ["".join(row).rstrip() for row in self.rows]

    def feed(self, text: str) -> None:
        """Take what a program has written."""
        at = 0
        while at < len(text):
            if found := _COMMAND.match(text, at):
                self._command(*found.groups())
                at = found.end()
                continue
            if text[at] == "\r":
                self._column = 0
            elif text[at] == "\n":
                self._next_row(wrapped=False)
            else:
                self._put(text[at])
            at += 1

    def resize(self, width: int) -> None:
        """Get another width. The cursor stays behind the last character."""
        joined: list[list[str]] = []
        for row, goes_on in zip(self.rows, [False, *self._wrapped], strict=False):
            if goes_on:
                joined[-1] += row
            else:
                joined.append(list(row))
        self.__init__(width)
        for number, line in enumerate(joined):
            if number:
                self._next_row(wrapped=False)
            for char in filter(None, line):
                self._put(char)

    def _command(self, private: str, numbers: str, kind: str) -> None:
        match private, kind, numbers:
            case "", "A", _:
                self._row = max(0, self._row - int(numbers or 1))
            case "", "J", _:
                del self.rows[self._row + 1 :], self._wrapped[self._row + 1 :]
                del self.rows[self._row][self._column :]
                self._wrapped[self._row] = False
            case "?", _, "7":
                self._wraps = kind == "h"
            case "?", _, "25":
                self.cursor_shown = kind == "h"
            case "", "m", _:
                pass
            case _:
                raise AssertionError(f"unknown command {private}{numbers}{kind}")

    def _next_row(self, *, wrapped: bool) -> None:
        self._wrapped[self._row] = wrapped
        self._row, self._column = self._row + 1, 0
        if self._row == len(self.rows):
            self.rows.append([])
            self._wrapped.append(False)

    def _put(self, char: str) -> None:
        cells = cell_len(char)
        if self._column + cells > self.width:
            if not self._wraps:
                return
            self._next_row(wrapped=True)
        row = self.rows[self._row]
        row += [" "] * (self._column - len(row))
        row[self._column : self._column + cells] = [char, *[""] * (cells - 1)]
        self._column += cells


class Terminal:
    """A process whose controlling terminal is one of the test's own, as in a window."""

    def __init__(self, argv: Sequence[str], environment: dict[str, str], columns: int = 80) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(columns)
        self.before = termios.tcgetattr(theirs)
        program = (
            "import fcntl, os, sys, termios\n"
            "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
            "os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *argv],
            **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
            start_new_session=True,
            env=environment,
        )
        self._theirs = theirs
        """Kept open, so that the modes can be read when the process is over."""
        self.shown = ""
        self._awaited = 0
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._theirs)
        self._reader.join()
        os.close(self._ours)

    @property
    def modes(self) -> list[object]:
        """The modes of the terminal."""
        return termios.tcgetattr(self._theirs)

    def resize(self, columns: int) -> None:
        """Get another width."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def press(self, keys: str | bytes) -> None:
        """Type something, all at once."""
        os.write(self._ours, keys if isinstance(keys, bytes) else keys.encode())

    def wait_for(self, text: str, seconds: float = 120) -> None:
        """Wait until the process has shown `text`, after what was waited for before."""
        with self._more:
            shown = self._more.wait_for(lambda: text in self.shown[self._awaited :], seconds)
            assert shown, f"no {text!r} in {self.shown[self._awaited :][:2000]!r}"
            self._awaited = self.shown.index(text, self._awaited) + len(text)

    def end(self, seconds: float = 60) -> int:
        """Wait until the process has ended, and return its exit status."""
        status = self.process.wait(seconds)
        os.write(self._theirs, b"\0")  # behind all that the process has shown
        self.wait_for("\0")
        self.shown = self.shown.removesuffix("\0")
        return status

    def _read(self) -> None:
        """Read what is shown until the last process has closed the terminal."""
        while True:
            try:
                data = os.read(self._ours, 65536)
            except OSError:
                return
            with self._more:
                self.shown += data.decode(errors="replace")
                self._more.notify_all()
