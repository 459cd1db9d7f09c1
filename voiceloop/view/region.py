"""The live region: rows at the bottom of a terminal, below everything that is printed.

rich prints on the console as usual. Each print erases the rows and draws them again below the new
text, in one write. rich's own `Live` does that too. But it also redraws rows that have not changed,
and it leaves rows behind when the terminal gets narrower.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleRenderable, RenderHook
from rich.control import Control
from rich.segment import ControlType, Segment, Segments
from rich.text import Text

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"


class Region(RenderHook):
    """The rows of one console while the context lasts."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: Sequence[Text] = ()
        self._drawn: list[int] = []
        """The widths in cells of the rows that are on the terminal."""

    def __enter__(self) -> Region:
        self._console.push_render_hook(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()
        self._console.pop_render_hook()

    def show(self, rows: Sequence[Text]) -> None:
        """Draw `rows`, unless the terminal has them already."""
        if rows != self._rows:
            self._rows = rows
            self._console.print(Control())

    def clear(self) -> None:
        """Erase the rows, and show the cursor again."""
        self._rows = ()
        self._console.print(Control())

    def forget(self) -> None:
        """Assume that the rows are gone, because others have written on the terminal. The next rows
        are drawn below that text."""
        self._rows, self._drawn = (), []

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Return the code that erases the old rows, then what is printed now, then the new rows."""
        erased = self._erasing()
        if not self._rows:
            self._drawn = []
            return [Segments([_command(erased + SHOW_CURSOR)]), *renderables]
        options = self._console.options.update(no_wrap=True, overflow="crop")
        lines = [self._console.render_lines(row, options, pad=False)[0] for row in self._rows]
        self._drawn = [Segment.get_line_length(line) for line in lines]
        # Terminals disagree about the width of some characters. If a row is wider than computed
        # here, the terminal cuts it off instead of wrapping it.
        drawn = [_command(HIDE_CURSOR + NO_WRAP)]
        for line in lines:
            drawn += [*line, Segment.line()]
        return [Segments([_command(erased)]), *renderables, Segments([*drawn[:-1], _command(WRAP)])]

    def _erasing(self) -> str:
        """Return the code that moves the cursor to the first row and erases everything below.

        If the terminal has become narrower, it has wrapped each row into several lines.
        """
        if not self._drawn:
            return ""
        width = max(self._console.width, 1)
        lines = sum(max(1, -(-cells // width)) for cells in self._drawn)
        up = f"\x1b[{lines - 1}A" if lines > 1 else ""
        return f"\r{up}\x1b[J"


def _command(code: str) -> Segment:
    """Return a segment that rich passes on as it is; the type is for old Windows consoles only."""
    return Segment(code, None, [(ControlType.CLEAR,)])
