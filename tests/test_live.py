"""The live view, as a terminal shows it: the transcript, and four rows below it."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tests.terminals import Screen
from tests.test_view import CUT, NOON, turn, words
from voiceloop.types import (
    Clause,
    Event,
    FloorChange,
    Notice,
    TokenBurst,
    ToolCall,
    Transcript,
    TurnHeard,
    TurnTrace,
)
from voiceloop.view.rows import METER, STATE, Activity, Status, meter, rows
from voiceloop.view.transcript import TurnText, summary
from voiceloop.view.views import LiveView

pytestmark = pytest.mark.pure

WIDTHS = (40, 60, 80, 120)
KEYS = "space stop   m mute   r repeat   q quit"
STATUS = Status(75.0, 0.1, keys=KEYS)


class Watched:
    """A live view on a screen."""

    def __init__(self, width: int, **environment: str) -> None:
        self.out = io.StringIO()
        self.screen = Screen(width)
        self._seen = 0
        self.console = Console(
            file=self.out,
            force_terminal=True,
            width=width,
            color_system="standard",
            _environ=environment,
        )
        self.view = LiveView(self.console)

    def read(self) -> str:
        """What was written since the last call; the screen shows it."""
        written = self.out.getvalue()[self._seen :]
        self._seen += len(written)
        self.screen.feed(written)
        return written

    def resize(self, width: int) -> None:
        self.read()
        self.console.width = width
        self.screen.resize(width)


def shown(events: list[Event], width: int = 80, **environment: str) -> list[str]:
    """The lines of a screen after `events`."""
    watched = Watched(width, **environment)
    with watched.view as view:
        for event in events:
            view.show(event)
            view.draw(STATUS)
        watched.read()
    return watched.screen.lines


# The rows


@pytest.mark.parametrize("width", WIDTHS)
def test_the_region_is_four_rows_and_small_terminals_have_no_meter_and_no_keys(width: int) -> None:
    lines = shown([TurnHeard(1, 0, over=False), *NOON[:1]], width)
    rule, state, more, keys = lines
    assert rule == "─" * width
    assert "hearing you" in state and keys.endswith("01:15")
    assert f"{state} {more.strip()}".strip().endswith("What time is it?")
    assert ("▁" in state, "q quit" in keys) == ((width >= 60,) * 2)


def console(width: int, *, styled: bool = True) -> Console:
    """A console with or without colours."""
    return Console(width=width, color_system="standard" if styled else None, _environ={})


def drawn(exchange: TurnText, width: int, *, styled: bool = True) -> tuple[Text, Text]:
    """The two rows of words, behind the state."""
    _, first, second, _ = rows("speaking", exchange, [], STATUS, console(width, styled=styled))
    begin = first.plain.index("speaking") + STATE + 1
    return first[begin:], second[begin:]


def told(settled: int, tentative: int) -> TurnText:
    """Words with numbers."""
    reply = " ".join(f"w{number}" for number in range(settled + tentative))
    return TurnText(reply=reply, sounding=settled)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(40, 120))
def test_words_flow_over_two_rows_and_the_tentative_ones_are_dim(
    settled: int, tentative: int, width: int
) -> None:
    """The rows have the end of the settled words, and neither breaks the sentence between them."""
    lines = drawn(told(settled, tentative), width)
    shown = "".join(line.plain for line in lines)
    numbers = [int(word) for word in re.findall(r"w(\d+)", shown)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
    assert ("…" in shown) == (len(numbers) < settled + tentative)
    assert not settled or settled - 1 in numbers
    assert not tentative or settled in numbers
    for line in lines:
        for found in re.finditer(r"w(\d+)", line.plain):
            style = line.get_style_at_offset(Console(), found.start())
            assert bool(style.dim) == (int(found[1]) >= settled)
    if numbers and len(lines[1].plain.split()) and not lines[0].plain.startswith("…"):
        assert numbers[0] == 0


def test_the_keys_are_listed_above_the_last_one_and_a_typed_line_takes_their_place() -> None:
    def last(status: Status, width: int) -> list[str]:
        made = rows("listening", TurnText(), [], status, Console(width=width))
        return [row.plain for row in made[3:]]

    assert last(replace(STATUS, keys="a one\nb two"), 40) == [" a one", f" b two{'01:15 ':>34}"]
    assert last(replace(STATUS, typed=""), 40)[0].startswith(" > ▏ Enter sends, Esc")
    assert last(replace(STATUS, typed="What is"), 40)[0].split() == [">", "What", "is▏", "01:15"]
    assert last(replace(STATUS, typed="x" * 99 + "end"), 40)[0].strip().startswith("> …x")
    assert "end▏" in last(replace(STATUS, typed="x" * 99 + "end"), 40)[0]


def test_figures_are_shown_from_the_moment_on_at_which_they_are_asked_for() -> None:
    watched = Watched(80)
    with watched.view as view:
        for events, figures in (NOON, False), (CUT, True):
            view.draw(replace(STATUS, figures=figures))
            for event in events:
                view.show(event)
        watched.read()
    (line,) = (line for line in watched.screen.lines if "400 ms" in line)
    assert watched.screen.lines.index(line) == 4


def test_a_reply_is_settled_as_far_as_it_sounds() -> None:
    assert "thinking" in shown(NOON[:4])[-3]
    assert shown(NOON[:4], NO_COLOR="1")[-3].endswith("~It is noon.~")
    assert "speaking" in shown(NOON[:5])[-3]
    assert shown(NOON[:5], NO_COLOR="1")[-3].endswith("It is ~noon.~")


def test_the_meter_rises_with_the_level() -> None:
    decibels = range(-80, 1)
    bars = meter([10 ** (db / 20) for db in decibels])
    assert sorted(set(bars)) == sorted(METER) and bars[0] == METER[0] and bars[-1] == METER[-1]
    assert all(METER.index(quiet) <= METER.index(loud) for quiet, loud in pairwise(bars))
    assert meter([0.0, 5.0]) == "▁▇"


# The states


def states(*events: Event) -> list[str]:
    """The state after each event."""
    activity, found = Activity(), list[str]()
    for event in events:
        activity.follow(event)
        found.append(activity.state)
    return found


CLAUSE = Clause(1, 0, "It is noon.", "It is noon.")


def test_the_state_follows_a_turn() -> None:
    events = (
        (TurnHeard(1, 0, over=False), "hearing you"),
        (TurnHeard(1, 9, over=True), "thinking"),
        (ToolCall(1, "c", "clock", {}), "asking a tool"),
        (TokenBurst(1, (1,), "It is"), "thinking"),
        (CLAUSE, "speaking"),
        (TokenBurst(1, (1,), " noon."), "speaking"),
        (TurnTrace(1), "listening"),
    )
    assert states(*(event for event, _ in events)) == [state for _, state in events]


@pytest.mark.parametrize("decided", ["resumed", "interrupted"])
def test_a_contested_reply_is_paused_until_that_is_decided(
    decided: Literal["resumed", "interrupted"],
) -> None:
    found = states(
        CLAUSE,
        FloorChange(2, 1, "paused"),
        TurnHeard(2, 0, over=False),
        FloorChange(2, 1, decided),
        TurnTrace(1),
        TurnTrace(2),
    )
    assert found == ["speaking", "paused", "paused", "speaking", "hearing you", "listening"]


# The transcript


@pytest.mark.parametrize("width", WIDTHS)
def test_finished_turns_are_above_the_region_once(width: int) -> None:
    lines = shown([*NOON, *CUT], width)
    above, region = lines[:-4], lines[-4:]
    assert above[:2] == ["you     What time is it?", "loop    It is noon."]
    assert above[2].startswith("400 ms  endpoint 200 · asr 50")
    assert above[3:5] == ["you     Tell me more.", "loop    The sun is high. (interrupted)"]
    assert len(above) == 6
    assert "listening" in region[1] and not region[2]


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
@given(st.integers(0, 60), st.integers(0, 200), st.integers(40, 120))
@example(0, 26, 91)
def test_what_was_not_heard_takes_two_lines_at_most(
    environment: dict[str, str], heard: int, unheard: int, width: int
) -> None:
    reply = " ".join(["said"] * heard + ["never"] * unheard)
    events = turn(1, "Go on.", [reply], "interrupted", " ".join(["said"] * heard))
    lines = shown(events, width, **environment)
    text = "\n".join(lines).partition("400 ms")[0]
    assert text.count("said") == heard
    assert sum("never" in line for line in lines) <= 2
    assert ("…" in text) == (text.count("never") < unheard)
    assert text.count("never") >= min(unheard, 2)


# Anything

texts = st.lists(
    st.text()
    | st.sampled_from(
        ["word", "東京", "👩\u200d🔬", "❤\ufe0f", "שלום", "e\u0301", "\x1b[2J", "\r\n"]
    ),
    max_size=30,
).map(" ".join)
numbers = st.integers(1, 3)
events = st.lists(
    st.builds(
        lambda turn, settled, tentative: Transcript(turn, 1, words(settled), words(tentative)),
        *(numbers, texts, texts),
    )
    | st.builds(lambda turn, text: TokenBurst(turn, (1,), text), numbers, texts)
    | st.builds(lambda turn, text: Clause(turn, 0, text, text), numbers, texts)
    | st.builds(lambda turn, text: ToolCall(turn, "c", text, {text: text}), numbers, texts)
    | st.builds(TurnHeard, numbers, st.just(0), st.booleans())
    | st.builds(
        FloorChange, numbers, numbers, st.sampled_from(["paused", "resumed", "interrupted"])
    )
    | st.builds(Notice, texts)
    | st.builds(
        lambda turn, heard, outcome: TurnTrace(turn, heard=heard, outcome=outcome),
        *(numbers, texts, st.sampled_from(["done", "interrupted", "silent", "abandoned"])),
    ),
    max_size=12,
)
environments = st.sampled_from([{}, {"NO_COLOR": "1"}])
levels = st.none() | st.floats(0, 1)


@given(events, st.integers(40, 120), environments, levels)
def test_there_are_four_rows_at_the_bottom_whatever_is_shown(
    events: list[Event], width: int, environment: dict[str, str], level: float | None
) -> None:
    watched = Watched(width, **environment)
    with watched.view as view:
        for event in events:
            view.show(event)
            view.draw(replace(STATUS, level=level))
            watched.read()
            assert all(cell_len(line) <= width for line in watched.screen.lines[-4:])
            rules = [at for at, row in enumerate(watched.screen.lines) if row == "─" * width]
            assert rules == [len(watched.screen.lines) - 4]
    watched.read()
    assert watched.screen.cursor_shown
    assert "─" * width not in watched.screen.lines


@given(st.lists(st.integers(40, 120), min_size=1, max_size=5))
def test_a_terminal_that_is_resized_keeps_the_transcript_and_one_region(widths: list[int]) -> None:
    watched = Watched(80)
    with watched.view as view:
        for event in [*CUT, TurnHeard(3, 0, over=False), *turn(3, "Why? " * 40, [])[:1]]:
            view.show(event)
        view.draw(STATUS)
        for width in widths:
            watched.resize(width)
            view.draw(STATUS)
            watched.read()
            above, region = watched.screen.lines[:-4], watched.screen.lines[-4:]
            assert region[0] == "─" * width
            told = " ".join(" ".join(above).split())
            assert told.startswith("you Tell me more. loop The sun is high. (interrupted) 400 ms")
            assert "─" not in told


def test_nothing_is_written_without_a_change() -> None:
    watched = Watched(80)
    with watched.view as view:
        for _ in range(10):
            view.draw(replace(STATUS, level=0.0))
        assert watched.read()
        view.draw(replace(STATUS, level=0.0, elapsed_s=75.9))
        assert not watched.read()
        view.draw(replace(STATUS, level=0.0, elapsed_s=76.0))
        assert watched.read()


def test_a_region_that_was_paused_is_drawn_below_what_others_wrote() -> None:
    watched = Watched(80)
    with watched.view as view:
        view.draw(STATUS)
        view.pause()
        view.draw(STATUS)
        watched.read()
        assert watched.screen.cursor_shown and watched.screen.lines == [""]
        watched.screen.feed("[1]+  Stopped\n")
        view.draw(STATUS)  # which may come before the news that the process goes on
        view.resume()
        view.draw(STATUS)
        watched.read()
        assert watched.screen.lines[0] == "[1]+  Stopped"
        assert len(watched.screen.lines) == 5
    watched.read()
    assert watched.screen.lines == ["[1]+  Stopped", ""]


def test_after_a_stop_without_notice_nothing_of_others_is_erased() -> None:
    watched = Watched(80)
    with watched.view as view:
        view.draw(STATUS)
        watched.read()
        watched.screen.feed("\nStopped (signal)\n")
        view.resume()
        view.draw(STATUS)
        watched.read()
        assert watched.screen.lines[4] == "Stopped (signal)"
        assert len(watched.screen.lines) == 9


# The summary


def test_the_summary_counts_turns_waits_drafts_and_interruptions() -> None:
    traces = [event for event in (*NOON, *CUT) if isinstance(event, TurnTrace)]
    nothing = TurnTrace(3, outcome="abandoned")
    assert summary([*traces, nothing], 90.0) == [
        "2 turns in 1.5 minutes, 1 interruption",
        "voice to voice: median 400 ms, p90 400 ms",
        "draft tokens accepted: 50%",
    ]
    assert summary([nothing], 90.0) == []
    assert summary([TurnTrace(1)], 60.0) == ["1 turn in 1.0 minutes, 0 interruptions"]
