"""The view for terminals: a transcript that scrolls, and below it a region that is redrawn."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Self

from rich.console import Console

from voiceloop.types import Event
from voiceloop.view.activity import SPEAKING, Activity
from voiceloop.view.region import Region
from voiceloop.view.rows import LEVELS, Status, entry, rows
from voiceloop.view.text import TurnText
from voiceloop.view.transcript import TranscriptWriter

REFRESH_S = 0.1
"""Seconds between two calls of `draw`."""


class LiveView:
    """A view with the transcript and, while its context lasts, the live region below it."""

    def __init__(self, console: Console, *, timed: bool = True) -> None:
        self._console = console
        self._styled = console.color_system is not None and not console.no_color
        self._writer = TranscriptWriter(timed=timed)
        self._activity = Activity()
        self._levels = deque([0.0] * LEVELS, LEVELS)
        self._region = Region(console)
        self._paused = False

    def __enter__(self) -> Self:
        self._region.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._region.__exit__(kind, error, trace)

    def show(self, event: Event) -> None:
        """Take the next event, in order, and print the entries that it completes."""
        self._activity.follow(event)
        for made in self._writer.follow(event):
            self._console.print(entry(made, self._console, styled=self._styled))

    def draw(self, status: Status) -> None:
        """Bring the region up to date, unless the view is paused."""
        if self._paused:
            return
        self._levels.append(status.level or 0.0)
        if status.figures is not None:
            self._writer.timed = status.figures
        exchanges = self._writer.exchanges.live.values()
        told = [exchange for exchange in exchanges if exchange.said or exchange.reply]
        state, console = self._activity.state, self._console
        spoken = [exchange for exchange in told if exchange.reply] if state == SPEAKING else []
        newest = next(reversed(spoken or told), TurnText())
        self._region.show(rows(state, newest, self._levels, status, console, styled=self._styled))

    def pause(self) -> None:
        """Erase the region. `draw` does nothing until `resume` is called."""
        self._paused = True
        self._region.clear()

    def resume(self) -> None:
        """Draw the region again, below what others have written on the terminal.

        If SIGSTOP stopped the process, `pause` was not called before. Then the old region stays
        visible above the new one.
        """
        if not self._paused:
            self._region.forget()
        self._paused = False
