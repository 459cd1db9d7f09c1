"""Views of a session for its user: plain lines, a live region of a terminal, or JSON.

All three get the same events, and do not know their source. The text of models and
transcripts is made harmless before it reaches a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from voiceloop.terminal import printable
from voiceloop.trace.record import latency_line, to_json
from voiceloop.types import Clause, Event, Notice, TokenBurst, ToolCall, Transcript, TurnTrace

REFRESH_HZ = 12


class View(Protocol):
    """A protocol of objects that show a session's events."""

    def show(self, event: Event) -> None:
        """Show the next event, in order."""
        ...


@contextmanager
def open_view(out: TextIO, err: TextIO, *, as_json: bool, timed: bool) -> Generator[View]:
    """Yield the view that suits `out`: JSON if requested, live on a terminal, otherwise plain
    lines.

    `timed` is False if the session's pace makes latencies meaningless. Then none are shown.
    """
    console = Console(file=out, highlight=False)
    if as_json:
        yield JsonView(out, err, timed=timed)
    elif console.is_terminal:
        with LiveView(console, timed=timed) as view:
            yield view
    else:
        yield PlainView(out, timed=timed)


def split_after(text: str, words: int) -> tuple[str, str]:
    """Split `text` after its first `words` words."""
    parts = text.split()
    return " ".join(parts[:words]), " ".join(parts[words:])


@dataclass(slots=True)
class TurnText:
    """Text of a turn so far."""

    transcript: Transcript | None = None
    reply: str = ""
    sounding: int = 0
    """Number of words of the reply that have sounded or are about to."""

    @property
    def said(self) -> str:
        """The user's words."""
        return self.transcript.text if self.transcript else ""


class Exchanges:
    """The turns that are not over yet, each with its text."""

    def __init__(self) -> None:
        self.live: dict[int, TurnText] = {}

    def follow(self, event: Transcript | TokenBurst | Clause) -> TurnText:
        """Add an event to its turn, and return the text of that turn."""
        exchange = self.live.setdefault(event.turn, TurnText())
        match event:
            case Transcript():
                exchange.transcript = event
            case TokenBurst():
                exchange.reply += event.text
            case Clause():
                exchange.sounding += len(event.text.split())
        return exchange

    def end(self, turn: int) -> TurnText:
        """Forget a turn, and return its text."""
        return self.live.pop(turn, TurnText())


class PlainView:
    """A view of plain lines: the transcript when the reply begins, the rest after the turn."""

    def __init__(self, out: TextIO, *, timed: bool = True) -> None:
        self._out = out
        self._timed = timed
        self._exchanges = Exchanges()
        self._introduced = 0

    def show(self, event: Event) -> None:
        """Show the next event, in order."""
        match event:
            case Notice():
                self._line("note", event.text)
            case ToolCall():
                self._introduce(event.turn, self._exchanges.live.get(event.turn, TurnText()))
                self._line("call", call_text(event))
            case TurnTrace():
                self._end(event, self._exchanges.end(event.turn))
            case TokenBurst():
                self._introduce(event.turn, self._exchanges.follow(event))
            case Transcript() | Clause():
                self._exchanges.follow(event)

    def _introduce(self, turn: int, exchange: TurnText) -> None:
        if turn > self._introduced and exchange.said:
            self._introduced = turn
            self._line("you", exchange.said)

    def _end(self, trace: TurnTrace, exchange: TurnText) -> None:
        self._introduce(trace.turn, exchange)
        heard, unheard = split_after(exchange.reply, _words_heard(trace, exchange))
        if (ending := _ending(trace)) and (exchange.reply or trace.outcome == "silent"):
            lost = f"; not heard: {unheard}" if unheard else ""
            heard = f"{heard} ({ending}{lost})".strip()
        if heard:
            self._line("loop", heard)
        if self._timed and (line := latency_line(trace)):
            self._line("", line)

    def _line(self, label: str, text: str) -> None:
        self._out.write(f"{label:<5} {printable(text)}\n")
        self._out.flush()


class LiveView:
    """A view on a terminal. Turns that go on are in a region that is redrawn; finished ones scroll
    away.

    The user's tentative words are dim. Words of the reply are dim until they sound; at the end of
    the turn, those that were not heard are struck out.
    """

    def __init__(self, console: Console, *, timed: bool = True) -> None:
        self._timed = timed
        self._exchanges = Exchanges()
        self._live = Live(console=console, refresh_per_second=REFRESH_HZ, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        self._live.update(self.region())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.update("")
        self._live.stop()

    def show(self, event: Event) -> None:
        """Show the next event, in order."""
        match event:
            case Notice():
                self._print(("note", Text(printable(event.text), "yellow")))
            case ToolCall():
                self._print(("call", Text(printable(call_text(event)), "dim")))
            case TurnTrace():
                self._end(event, self._exchanges.end(event.turn))
            case Transcript() | TokenBurst() | Clause():
                self._exchanges.follow(event)
        self._live.update(self.region())

    def _end(self, trace: TurnTrace, exchange: TurnText) -> None:
        rows = [("you", Text(printable(exchange.said)))] if exchange.said else []
        if exchange.reply or trace.outcome == "silent":
            heard, unheard = split_after(exchange.reply, _words_heard(trace, exchange))
            reply = _joined((heard, ""), (unheard, "dim strike"))
            if ending := _ending(trace):
                reply.append(f" ({ending})", "yellow")
            rows.append(("loop", reply))
        if self._timed and (line := latency_line(trace)):
            rows.append(("", Text(line, "dim")))
        self._print(*rows)

    def _print(self, *rows: tuple[str, Text]) -> None:
        if rows:
            self._live.console.print(_grid(*rows))

    def region(self) -> RenderableType:
        """Return the turns that go on, and the state of the session."""
        rows: list[tuple[str, Text]] = []
        state = "listening"
        for exchange in self._exchanges.live.values():
            if transcript := exchange.transcript:
                settled = transcript.committed_text
                tentative = " ".join(word.text for word in transcript.tentative)
                rows.append(("you", _joined((settled, ""), (tentative, "dim"))))
            if exchange.reply:
                sounding, queued = split_after(exchange.reply, exchange.sounding)
                rows.append(("loop", _joined((sounding, ""), (queued, "dim"))))
                state = "speaking" if exchange.sounding else "thinking"
        line = Text(f"● {state}", "green" if state == "listening" else "cyan")
        return Group(_grid(*rows), line) if rows else line


class JsonView:
    """A view with a line of JSON for each turn that is over. Notices go to `err` as text.

    Marks are in seconds from the turn's start. Latencies are null if `timed` is False.
    """

    def __init__(self, out: TextIO, err: TextIO, *, timed: bool = True) -> None:
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
            case ToolCall():
                pass

    def _record(self, trace: TurnTrace) -> dict[str, object]:
        exchange, plain = self._exchanges.end(trace.turn), to_json(trace)
        return {
            "turn": trace.turn,
            "transcript": exchange.said,
            "reply": exchange.reply.strip(),
            "heard": trace.heard,
            "voice_to_voice_ms": plain["voice_to_voice_ms"] if self._timed else None,
            "endpoint_to_sound_ms": plain["endpoint_to_sound_ms"] if self._timed else None,
            "marks": plain["marks"],
            "drafted": int(trace.counters.get("drafted", 0)),
            "accepted": int(trace.counters.get("accepted", 0)),
            "outcome": trace.outcome,
            "incomplete": bool(trace.counters.get("too_long")),
        }


def call_text(call: ToolCall) -> str:
    """Return a tool call as text, in the notation of a function call."""
    return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"


def _ending(trace: TurnTrace) -> str:
    """Return how a reply ended; empty if it ended by itself."""
    if trace.outcome != "done":
        return trace.outcome
    return "cut at its most tokens" if trace.counters.get("too_long") else ""


def _words_heard(trace: TurnTrace, exchange: TurnText) -> int:
    """Return how many words of the written reply were heard. That is all of them if the reply came
    to its end: its spoken text may have another number of words."""
    if trace.outcome in ("done", "silent"):
        return len(exchange.reply.split())
    return len(trace.heard.split())


def _joined(*pieces: tuple[str, str]) -> Text:
    """Join pieces of text, each in its style, with spaces."""
    return Text(" ").join(Text(printable(text), style) for text, style in pieces if text)


def _grid(*rows: tuple[str, Text]) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=5, style="bold", no_wrap=True)
    grid.add_column()
    for label, text in rows:
        grid.add_row(label, text)
    return grid
