"""Prints each finding as soon as it is made. It prints a line for the finding and a line for its
cure, or a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import msgspec
from rich.console import Console
from rich.text import Text

from voiceloop.doctor.examine import CheckEvent
from voiceloop.doctor.findings import Finding
from voiceloop.terminal import printable

COLOURS = {"ok": "green", "warning": "yellow", "broken": "bold red"}
MARGIN = 9
"""Width of the column of marks, in characters."""

Show = Callable[[CheckEvent], None]


@contextmanager
def printer(stream: TextIO, *, as_json: bool) -> Iterator[Show]:
    """Yield a function that prints to `stream`. On a terminal it also shows the running check."""
    if as_json:
        yield lambda event: _show_json(stream, event)
        return
    console = _Console(file=stream, highlight=False, soft_wrap=True)
    with console.status("trying") as status:

        def show(event: CheckEvent) -> None:
            if isinstance(event, str):
                status.update(f"trying: {event}")
            else:
                _show(console, event)

        yield show


class _Console(Console):
    """A console that does not end the program when its pipe is closed."""

    def on_broken_pipe(self) -> None:
        """Raise the error of the closed pipe again, for the program to handle. rich itself would
        end the program."""
        raise


def _show(console: Console, finding: Finding) -> None:
    colour = COLOURS[finding.mark]
    _print(console, finding.mark, colour, f"{finding.check}: {finding.text}")
    if finding.cure:
        _print(console, "", "", f"cure: {finding.cure}")


def _print(console: Console, mark: str, colour: str, text: str) -> None:
    """Print a mark and a text beside it. On a terminal the text is wrapped to a column; elsewhere
    it is one line."""
    beside = Text(printable(text))
    width = max(MARGIN, console.width - MARGIN)
    for line in beside.wrap(console, width) if console.is_terminal else [beside]:
        console.print(Text.assemble((f"{mark:<{MARGIN}}", colour), line))
        mark = ""


def _show_json(stream: TextIO, event: CheckEvent) -> None:
    if isinstance(event, Finding):
        stream.write(f"{msgspec.json.encode(event).decode()}\n")
        stream.flush()
