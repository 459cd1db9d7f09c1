"""Show a session, in the way that suits an output: in a terminal a transcript that scrolls, with a
region below it that is redrawn; plain lines in pipes, files and terminals that cannot move their
cursor; and for programs a line of JSON for each turn.

The live region is rows at the bottom of a terminal, below everything that is printed. rich prints
on the console as usual. Each print erases the rows and draws them again below the new text, in one
write. rich's own `Live` does that too. But it also redraws rows that have not changed, and it
leaves rows behind when the terminal gets narrower.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import IO, Protocol, Self

from rich.console import Console, ConsoleRenderable, RenderHook
from rich.control import Control
from rich.segment import ControlType, Segment, Segments
from rich.text import Text

from voiceloop.terminal import printable
from voiceloop.trace.record import to_json
from voiceloop.types import FILTERED, Clause, Event, Notice, TokenBurst, Transcript, TurnTrace
from voiceloop.view.rows import LABEL, LEVELS, SPEAKING, Activity, Status, entry, rows
from voiceloop.view.transcript import Entry, Exchanges, TranscriptWriter, TurnText

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


REFRESH_S = 0.1
"""Seconds between two calls of `draw`."""


class LiveView:
    """A view with the transcript and, while its context lasts, the live region below it."""

    def __init__(self, console: Console, *, timed: bool = True) -> None:
        self._console = console
        self._writer = TranscriptWriter(timed=timed)
        self._activity = Activity()
        self._levels = deque([0.0] * LEVELS, LEVELS)
        self._region = Region(console)
        self._paused = False

    def __enter__(self) -> Self:
        self._region.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._region.__exit__(*error)

    def show(self, event: Event) -> None:
        """Take the next event, in order, and print the entries that it completes."""
        self._activity.follow(event)
        for made in self._writer.follow(event):
            self._console.print(entry(made, self._console))

    def draw(self, status: Status) -> None:
        """Bring the region up to date, unless the view is paused."""
        if self._paused:
            return
        self._levels.append(status.level or 0.0)
        if status.figures is not None:
            self._writer.timed = status.figures
        exchanges = self._writer.exchanges.live.values()
        told = [exchange for exchange in exchanges if exchange.said or exchange.reply]
        state = self._activity.state
        spoken = [exchange for exchange in told if exchange.reply] if state == SPEAKING else []
        newest = next(reversed(spoken or told), TurnText())
        self._region.show(rows(state, newest, self._levels, status, self._console))

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


class PlainView:
    """A view with one line for each entry of the transcript."""

    def __init__(self, out: IO[str], *, timed: bool = True) -> None:
        self._out = out
        self._writer = TranscriptWriter(timed=timed)

    def show(self, event: Event) -> None:
        """Show the next event, in order."""
        for made in self._writer.follow(event):
            self._out.write(f"{made.label:<{LABEL}} {printable(_text(made))}\n")
            self._out.flush()


def _text(entry: Entry) -> str:
    unheard = f"[not heard: {entry.unheard}]" if entry.unheard else ""
    ending = f"({entry.ending})" if entry.ending else ""
    return " ".join(filter(None, (entry.text, unheard, ending)))


class JsonView:
    """A view with a line of JSON for each turn that is over. Notices go to `err` as text.

    Marks are in seconds from the turn's start. Latencies are null if `timed` is False.
    """

    def __init__(self, out: IO[str], err: IO[str], *, timed: bool = True) -> None:
        self._out = out
        self._err = err
        self._timed = timed
        self._exchanges = Exchanges()

    def show(self, event: Event) -> None:
        """Show the next event, in order."""
        match event:
            case Notice():
                self._err.write(f"{printable(event.text)}\n")
            case TurnTrace():
                self._out.write(json.dumps(self._record(event)) + "\n")
                self._out.flush()
            case Transcript() | TokenBurst() | Clause():
                self._exchanges.follow(event)
            case _:
                pass

    def _record(self, trace: TurnTrace) -> dict[str, object]:
        over = self._exchanges.over(trace)
        return {
            "turn": over.turn,
            "transcript": over.said,
            "reply": over.reply,
            "heard": over.heard,
            "voice_to_voice_ms": over.voice_to_voice_ms if self._timed else None,
            "endpoint_to_sound_ms": over.endpoint_to_sound_ms if self._timed else None,
            "marks": to_json(trace)["marks"],
            "drafted": int(trace.counters.get("drafted", 0)),
            "accepted": int(trace.counters.get("accepted", 0)),
            "outcome": trace.outcome,
            "incomplete": any(trace.counters.get(name) for name in ("too_long", FILTERED)),
        }


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
