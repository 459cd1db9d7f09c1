"""Prints findings as they come: a line for each and one for its cure, or an object of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import msgspec
from rich.console import Console
from rich.text import Text

from voiceloop.doctor.examine import Told
from voiceloop.doctor.findings import Finding
from voiceloop.terminal import printable

COLOURS = {"ok": "green", "warning": "yellow", "broken": "bold red"}
MARGIN = 9
"""Columns for the mark."""

Show = Callable[[Told], None]


@contextmanager
def printer(stream: TextIO, *, as_json: bool) -> Iterator[Show]:
    """What prints to `stream`; on a terminal it tells what is being tried, too."""
    if as_json:
        yield lambda told: _show_json(stream, told)
        return
    console = _Console(file=stream, highlight=False, soft_wrap=True)
    with console.status("trying") as status:

        def show(told: Told) -> None:
            if isinstance(told, str):
                status.update(f"trying: {told}")
            else:
                _show(console, told)

        yield show


class _Console(Console):
    """One that leaves it to the program what is done where nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Called while the error is handled; rich itself would end the program."""
        raise


def _show(console: Console, finding: Finding) -> None:
    mark = f"{finding.mark:<{MARGIN}}", COLOURS[finding.mark]
    console.print(Text.assemble(mark, printable(f"{finding.check}: {finding.text}")))
    if finding.cure:
        console.print(Text(printable(f"{'':{MARGIN}}cure: {finding.cure}")))


def _show_json(stream: TextIO, told: Told) -> None:
    if isinstance(told, Finding):
        stream.write(f"{msgspec.json.encode(told).decode()}\n")
        stream.flush()
