"""Opens the view that suits an output."""

from __future__ import annotations

from typing import IO, Protocol

from rich.console import Console

from voiceloop.types import Event
from voiceloop.view.jsonlines import JsonView
from voiceloop.view.live import LiveView
from voiceloop.view.plain import PlainView


class View(Protocol):
    """A protocol of objects that show a session's events."""

    def show(self, event: Event) -> None:
        """Show the next event, in order."""
        ...


def open_view(console: Console, err: IO[str], *, as_json: bool, timed: bool) -> View:
    """Return the view that suits the console's output: JSON if requested, live on a terminal whose
    cursor can move, otherwise plain lines.

    `timed` is False if the session's pace makes latencies meaningless. Then none are shown.
    """
    out = console.file
    if as_json:
        return JsonView(out, err, timed=timed)
    if out.isatty() and not (console.is_dumb_terminal or console.legacy_windows):
        return LiveView(console, timed=timed)
    return PlainView(out, timed=timed)
