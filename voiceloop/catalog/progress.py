"""One bar for all that is fetched, with its rate and the time that is left."""

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
    """A bar on the terminal."""

    progress: Progress
    task: TaskID

    def advance(self, count: int) -> None:
        """Move the bar on by `count` bytes."""
        self.progress.advance(self.task, count)

    def note(self, text: str) -> None:
        """A line above the bar."""
        self.progress.console.print(printable(f"voiceloop: {text}"), highlight=False, markup=False)


class Logged:
    """What there is where no terminal is: the log alone."""

    def advance(self, count: int) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """A line of the log."""
        logger.warning(text)


@contextmanager
def progress(title: str, total: int) -> Iterator[TerminalBar | Logged]:
    """A bar of `total` bytes on stderr while the body runs."""
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
