"""One progress bar for all files that are fetched, with the rate and the remaining time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voiceloop.terminal import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TerminalBar:
    """A progress bar on the terminal."""

    progress: Progress
    task: TaskID

    def advance(self, count: int) -> None:
        """Move the bar on by `count` bytes."""
        self.progress.advance(self.task, count)

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self.progress.console.print(printable(f"voiceloop: {text}"), highlight=False, markup=False)


class Logged:
    """A replacement for the bar where there is no terminal. It only logs notes."""

    def advance(self, count: int) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Log a line."""
        logger.warning(text)


@contextmanager
def progress(title: str, total: int) -> Iterator[TerminalBar | Logged]:
    """Show a bar of `total` bytes on stderr while the context lasts. If stderr is no terminal, only
    log `title` and notes."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        logged = Logged()
        logged.note(title)
        yield logged
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as shown:
        yield TerminalBar(shown, shown.add_task(printable(title), total=total))
