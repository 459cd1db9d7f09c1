"""Make the rows of the live region, and the entries above it, as rich renders them. The first row
tells the state of the session in a word, such as `listening`.

This module is pure: it neither reads nor writes. A row that is too long is cut, and never wraps.
Widths are counted in cells of the terminal. A wide character takes two cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from voiceloop.terminal import printable
from voiceloop.types import Clause, Event, FloorChange, TokenBurst, ToolCall, TurnHeard, TurnTrace
from voiceloop.view.transcript import Entry, TurnText, split_after

LISTENING = "listening"
MUTED = "muted"
HEARING = "hearing you"
THINKING = "thinking"
ASKING = "asking a tool"
SPEAKING = "speaking"
PAUSED = "paused"
MOST_TELLING = (PAUSED, SPEAKING, ASKING, THINKING, HEARING)
"""The states of turns, by precedence. If several turns are not over, only the state that comes
first in this list is shown."""


class Activity:
    """The state of each turn that is not over."""

    def __init__(self) -> None:
        self._doing: dict[int, str] = {}
        self._paused: set[int] = set()

    @property
    def state(self) -> str:
        """The state of the session; `LISTENING` between turns."""
        states = {PAUSED if turn in self._paused else doing for turn, doing in self._doing.items()}
        return next((state for state in MOST_TELLING if state in states), LISTENING)

    def follow(self, event: Event) -> None:
        """Take the next event, in order."""
        match event:
            case TurnHeard(turn=turn, over=over):
                self._doing[turn] = THINKING if over else HEARING
            case ToolCall(turn=turn, result=""):
                self._doing[turn] = ASKING
            case TokenBurst(turn=turn):
                if self._doing.get(turn) != SPEAKING:
                    self._doing[turn] = THINKING
            case Clause(turn=turn):
                self._doing[turn] = SPEAKING
            case FloorChange(rival=rival, change="paused") if rival in self._doing:
                self._paused.add(rival)
            case FloorChange(rival=rival):
                self._paused.discard(rival)
            case TurnTrace(turn=turn):
                self._doing.pop(turn, None)
                self._paused.discard(turn)
            case _:
                pass


LABEL = 7
"""Columns of a label, wide enough for `1430 ms`."""
METER = "▁▂▃▅▇"
STEP_DB = 12
"""Decibels of a step of the meter. The highest step begins at -12 dB relative to full scale."""
LEVELS = 8
"""Number of levels that the meter shows, the newest last."""
FULL = 60
"""Width in cells below which the meter and the keys are left out."""
STATE = max(map(len, MOST_TELLING))
UNHEARD_LINES = 2
"""Maximum number of lines for the words of a reply that were not heard."""


@dataclass(frozen=True, slots=True)
class Status:
    """The values that the live region shows in addition to the events."""

    elapsed_s: float
    level: float | None = None
    """Amplitude of the microphone's loudest sample since the last status (1 is full scale). None
    without a microphone."""
    idle: str = LISTENING
    """The state between turns: `listening`, `muted`, or what to do to be heard."""
    keys: str = ""
    """The keys and what they do. Narrow terminals show them only if they have several lines."""
    typed: str | None = None
    """The line that the user is typing; it takes the place of the keys. None if there is none."""
    figures: bool | None = None
    """Whether entries for latencies are made from now on; None leaves it as it was."""


def meter(levels: Sequence[float]) -> str:
    """Return one bar of the meter for each of `levels`, which are amplitudes (1 is full scale)."""
    steps = [10 ** (-STEP_DB * step / 20) for step in range(len(METER) - 1, 0, -1)]
    return "".join(METER[sum(level > step for step in steps)] for level in levels)


def rows(
    state: str, exchange: TurnText, levels: Sequence[float], status: Status, console: Console
) -> list[Text]:
    """Return the rows of the live region, laid out for the width of `console`: a rule, the state
    and two rows of words, the keys with the time.

    The words are those of `exchange`: of the user, or of the reply once there is one. Tentative
    words follow the settled ones. Words of a reply are settled when they sound. On a console
    without colours, tentative words are between tildes.
    """
    width = console.width
    wide = width >= FULL
    bars = f" {meter(levels):>{LEVELS}} " if wide and status.level is not None else ""
    shown = status.idle if state == LISTENING else state
    begin = Text(f"{bars} ").append(f"{shown:<{STATE}} ", _STATE_STYLES.get(shown, "cyan"))
    margin = " " * begin.cell_len
    before, first, second = _flow(exchange, max(width - begin.cell_len - 2, 1), console)
    return [
        Text("─" * width, "dim"),
        begin.append(before).append_text(first),
        Text(f"{margin} ").append_text(second),
        *_last_rows(status, width, wide=wide),
    ]


def entry(made: Entry, console: Console) -> Text:
    """Return an entry of the transcript, laid out for the width of `console`.

    Words that were not heard are struck out, or in brackets on a console without colours.
    """
    room = max(console.width - LABEL - 1, 1)
    text = Text(printable(made.text), "dim" if made.brief else _STYLES.get(made.label, ""))
    if made.unheard:
        text = _with_unheard(text, made.unheard, console, room)
    if made.ending:
        text = _joined(text, Text(f"({made.ending})", "yellow"))
    lines = text.wrap(console, room, no_wrap=made.brief, overflow="ellipsis")
    for line in lines:
        line.rstrip()
    begin = Text().append(f"{made.label:<{LABEL}} ", "bold")
    return begin.append_text(Text("\n" + " " * (LABEL + 1)).join(lines))


_STYLES = {"note": "yellow", "call": "dim"}
"""Styles of entries by their label."""
_STATE_STYLES = {LISTENING: "green", HEARING: "green", PAUSED: "yellow", MUTED: "yellow"}


def _words(exchange: TurnText) -> tuple[str, str]:
    """Return the settled words of a turn, and the tentative ones."""
    if exchange.reply:
        return split_after(exchange.reply, exchange.sounding)
    if exchange.transcript is None:
        return "", ""
    tentative = " ".join(word.text for word in exchange.transcript.tentative)
    return exchange.transcript.committed_text, tentative


def _flow(exchange: TurnText, room: int, console: Console) -> tuple[str, Text, Text]:
    """Return two lines of the words of a turn, where the tentative ones begin. A sign before them
    and one behind them tell that there are more."""
    settled, tentative = map(printable, _words(exchange))
    mark = "~" if tentative and not _styled(console) else ""
    unsure = Text(f"{mark}{tentative}{mark}", "dim")
    lines = _joined(Text(settled), unsure).wrap(console, room)
    begun = max(len(Text(settled).wrap(console, room)) - 1, 0)
    at = max(min(begun, len(lines) - 2), 0)
    first, second, *more = [*lines[at:], Text(), Text()]
    for line in (first, second):
        line.rstrip()
    if len(more) > 2:
        second.append("…", "dim")
    return "…" if at else " ", first, second


def _last_rows(status: Status, width: int, *, wide: bool) -> list[Text]:
    """Return the keys, or the line that is typed, with the time at the right margin."""
    minutes, seconds = divmod(int(status.elapsed_s), 60)
    time = f"{minutes:02}:{seconds:02} "
    room = width - len(time) - 2
    *above, last = status.keys.split("\n")
    row = Text(f" {_head(last, room)}" if wide or above else "", "dim")
    if status.typed is not None:
        hint = Text("" if status.typed else _head(" Enter sends, Esc leaves", room - 3), "dim")
        row = Text(f" > {_tail(status.typed, room - 3)}▏").append_text(hint)
    lines = [Text(f" {_head(line, width - 2)}", "dim") for line in above]
    return [*lines, row.append(time.rjust(width - row.cell_len))]


def _head(text: str, cells: int) -> str:
    """Return the beginning of `text`, printable, in at most `cells` cells."""
    if cells < 1:
        return ""
    shown = Text(printable(text))
    shown.truncate(cells, overflow="ellipsis")
    return shown.plain


def _tail(text: str, cells: int) -> str:
    """Return the end of `text`, printable, in at most `cells` cells."""
    if cells < 1:
        return ""
    end = printable(text[-cells - 1 :])
    if len(text) <= cells + 1 and cell_len(end) <= cells:
        return end
    while cell_len(end) >= cells:
        end = end[1:]
    return f"…{end}"


def _with_unheard(heard: Text, words: str, console: Console, room: int) -> Text:
    """Return the words `heard` and then the unheard `words`, wrapped at `room` cells. Words are
    left out if the unheard ones need more than `UNHEARD_LINES` lines."""
    styled = _styled(console)
    before, after = ("", "") if styled else ("[not heard: ", "]")
    unheard = Text(f"{before}{printable(words)}{after}", "dim strike" if styled else "dim")
    lines = _joined(heard, unheard).wrap(console, room)
    most = max(len(heard.wrap(console, room)), 1) + UNHEARD_LINES - 1
    if len(lines) > most:
        lines[most - 1].truncate(room - 1 - len(after))
        lines[most - 1].append(f"…{after}", unheard.style)
    return Text("\n").join(lines[:most])


def _styled(console: Console) -> bool:
    """Return whether a console shows styles, so that no signs are needed in their place."""
    return console.color_system is not None and not console.no_color


def _joined(*pieces: Text) -> Text:
    return Text(" ").join(piece for piece in pieces if piece)
