"""The view for pipes, files and terminals that cannot move their cursor: plain lines."""

from __future__ import annotations

from typing import IO

from voiceloop.terminal import printable
from voiceloop.types import Event
from voiceloop.view.transcript import Entry, TranscriptWriter

LABEL = 7
"""Columns of a label, wide enough for `1430 ms`."""


class PlainView:
    """A view with one line for each entry of the transcript."""

    def __init__(self, out: IO[str], *, timed: bool = True) -> None:
        self._out = out
        self._writer = TranscriptWriter(timed=timed)

    def show(self, event: Event) -> None:
        """Show the next event, in order."""
        for entry in self._writer.follow(event):
            self._out.write(f"{entry.label:<{LABEL}} {printable(_text(entry))}\n")
            self._out.flush()


def _text(entry: Entry) -> str:
    unheard = f"[not heard: {entry.unheard}]" if entry.unheard else ""
    ending = f"({entry.ending})" if entry.ending else ""
    return " ".join(filter(None, (entry.text, unheard, ending)))
