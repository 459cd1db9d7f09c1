"""What the user sees: plain lines, the transcript of a terminal, and JSON."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tests.terminals import TerminalText
from voiceloop.terminal import printable
from voiceloop.trace.record import Lane, Mark
from voiceloop.types import (
    Clause,
    Event,
    Notice,
    Outcome,
    StageSpan,
    TokenBurst,
    ToolCall,
    Transcript,
    TurnTrace,
    Word,
)
from voiceloop.view.rows import Status
from voiceloop.view.transcript import split_after
from voiceloop.view.views import JsonView, LiveView, PlainView, open_view

pytestmark = pytest.mark.pure

STYLE = re.compile(r"\x1b\[[0-9;]*m")
CURSOR = re.compile(r"\x1b\[(\?(25|7)[hl]|[0-9]*[AJ])|\r")


def words(text: str) -> tuple[Word, ...]:
    return tuple(Word(word, 0.0, 0.0) for word in text.split())


def turn(
    number: int, said: str, reply: list[str], outcome: Outcome = "done", heard: str = ""
) -> list[Event]:
    """The events of a turn."""
    marks: dict[str, float] = {
        Mark.SPEECH_START: 5.0,
        Mark.SPEECH_END: 6.0,
        Mark.ENDPOINT: 6.2,
        Mark.TRANSCRIPT_FINAL: 6.25,
        Mark.FIRST_CLAUSE: 6.3,
        Mark.FIRST_SYNTHESIS: 6.32,
        Mark.FIRST_SOUND: 6.4,
    }
    spans = (StageSpan(Lane.DECODE, "round", 6.2, 6.3, {"drafted": 4, "accepted": 2}),) * 2
    first, *rest = said.split() or [""]
    events: list[Event] = [
        Transcript(number, 1, words(first), words(" ".join(rest))),
        Transcript(number, 2, words(said), final=True),
        *(TokenBurst(number, (1, 2, 3), text, drafted=4, accepted=2) for text in reply),
        *(Clause(number, index, text.strip(), text.strip()) for index, text in enumerate(reply)),
        TurnTrace(number, marks, {"drafted": 8, "accepted": 4}, heard, outcome, spans),
    ]
    return events


NOON = turn(1, "What time is it?", ["It is", " noon."], heard="It is noon.")
CUT = turn(2, "Tell me more.", ["The sun", " is high."], "interrupted", "The sun is")
NOTHING: list[Event] = [TurnTrace(3, {Mark.SPEECH_START: 1.0}, outcome="abandoned")]


def plain(events: list[Event], *, timed: bool = True) -> list[str]:
    out = io.StringIO()
    view = PlainView(out, timed=timed)
    for event in events:
        view.show(event)
    return out.getvalue().splitlines()


def live(events: list[Event], **environment: str) -> str:
    """Everything that a terminal of 100 columns is sent."""
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, width=100, color_system="standard", _environ=environment
    )
    with LiveView(console) as view:
        for event in events:
            view.show(event)
            view.draw(Status(0.0))
    return out.getvalue()


# Plain


def test_a_turn_is_what_was_said_and_one_line_of_latency():
    assert plain(NOON) == [
        "you     What time is it?",
        "loop    It is noon.",
        "400 ms  endpoint 200 · asr 50 · llm 50 · tts 20 · output 80 · drafts 2 of 4",
    ]


def test_no_latency_is_shown_where_it_means_nothing():
    assert plain(NOON, timed=False) == ["you     What time is it?", "loop    It is noon."]


def test_an_interrupted_reply_says_what_was_not_heard():
    assert plain(CUT, timed=False)[1] == "loop    The sun is [not heard: high.] (interrupted)"


def test_what_was_heard_to_its_end_is_not_called_interrupted():
    *before, over = turn(1, "Hello.", ["Good day."], "interrupted", "Good day.")
    assert isinstance(over, TurnTrace)
    assert plain([*before, over], timed=False)[1] == "loop    Good day. (interrupted)"
    complete = replace(over, marks={**over.marks, Mark.REPLY_END: 6.35})
    assert plain([*before, complete], timed=False)[1] == "loop    Good day."
    cut = replace(complete, heard="Good")
    assert plain([*before, cut], timed=False)[1].endswith("[not heard: day.] (interrupted)")


def test_a_reply_that_was_cut_by_its_limit_says_so():
    *before, over = turn(1, "Hello.", ["Good day to"], heard="Good day to")
    assert isinstance(over, TurnTrace)
    events = [*before, replace(over, counters={**over.counters, "too_long": 1})]
    assert plain(events, timed=False)[1] == "loop    Good day to (cut at its most tokens)"
    assert "(cut at its most tokens)" in STYLE.sub("", live(events))
    assert "cut" not in "".join(plain([*before, over], timed=False))


@pytest.mark.parametrize(
    ("reply", "heard", "line"),
    [
        (["😀", " I have nothing to say."], "I have nothing to say.", "😀 I have nothing to say."),
        ([], "", ""),
    ],
)
def test_a_reply_without_speech_is_told_as_such(reply: list[str], heard: str, line: str):
    events = turn(1, "Hello.", reply, "silent", heard)
    assert plain(events, timed=False)[1] == f"loop    {f'{line} (silent)'.strip()}"
    assert f"{line} (silent)".strip() in CURSOR.sub("", STYLE.sub("", live(events)))
    out = io.StringIO()
    view = JsonView(out, io.StringIO())
    for event in events:
        view.show(event)
    record = json.loads(out.getvalue())
    assert (record["outcome"], record["heard"]) == ("silent", heard)


def test_calls_and_notices_come_between():
    call = ToolCall(1, "c1", "timer", {"minutes": 5})
    events = [*NOON[:2], call, Notice("the GPU is not used"), *NOON[2:]]
    assert plain(events, timed=False) == [
        "you     What time is it?",
        "call    timer(minutes=5)",
        "note    the GPU is not used",
        "loop    It is noon.",
    ]


# Live


def test_what_was_not_heard_is_struck_out_or_in_brackets_without_colour():
    assert "The sun is \x1b[2;9mhigh.\x1b[0m \x1b[33m(interrupted)" in live(CUT)
    assert "The sun is [not heard: high.] (interrupted)" in STYLE.sub("", live(CUT, NO_COLOR="1"))


def test_no_color_is_respected():
    colours = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-9]|4[0-9]|9[0-9])(?:;[0-9]+)*m")
    assert colours.search(live([*CUT, Notice("careful")]))
    assert not colours.search(live([*CUT, Notice("careful")], NO_COLOR="1"))


# JSON


def test_json_is_one_object_on_one_line_for_each_turn():
    out, err = io.StringIO(), io.StringIO()
    view = JsonView(out, err)
    for event in (*NOON, Notice("the reply failed: out of memory"), *CUT, *NOTHING):
        view.show(event)
    records = [json.loads(line) for line in out.getvalue().splitlines()]
    assert records[0] == {
        "turn": 1,
        "transcript": "What time is it?",
        "reply": "It is noon.",
        "heard": "It is noon.",
        "voice_to_voice_ms": 400.0,
        "endpoint_to_sound_ms": 200.0,
        "marks": {
            "speech_start": 0.0,
            "speech_end": 1.0,
            "endpoint": 1.2,
            "transcript_final": 1.25,
            "first_clause": 1.3,
            "first_synthesis": 1.32,
            "first_sound": 1.4,
        },
        "drafted": 8,
        "accepted": 4,
        "outcome": "done",
        "incomplete": False,
    }
    assert [record["outcome"] for record in records] == ["done", "interrupted", "abandoned"]
    assert records[1]["heard"] == "The sun is"
    assert records[2]["voice_to_voice_ms"] is None
    assert err.getvalue() == "the reply failed: out of memory\n"


# All


@pytest.mark.parametrize(
    ("tty", "as_json", "kind"),
    [
        (False, False, PlainView),
        (True, False, LiveView),
        (False, True, JsonView),
        (True, True, JsonView),
    ],
)
def test_a_terminal_gets_the_live_view_and_a_pipe_plain_lines(tty: bool, as_json: bool, kind: type):
    console = Console(file=TerminalText() if tty else io.StringIO(), _environ={})
    view = open_view(console, io.StringIO(), as_json=as_json, timed=True)
    assert type(view) is kind


def test_a_terminal_whose_cursor_cannot_move_gets_plain_lines():
    console = Console(file=TerminalText(), _environ={"TERM": "dumb"})
    assert type(open_view(console, io.StringIO(), as_json=False, timed=True)) is PlainView


steering = st.sampled_from("\x1b\x07\x9b\r\n\u2028\u202e\u2067\ud800")
nasty = st.lists(steering | st.characters(), max_size=12).map("".join)


@given(nasty)
def test_nothing_that_steers_a_terminal_is_printable(text: str):
    shown = printable(text)
    steers = ("Cc", "Cs", "Zl", "Zp")
    assert not any(unicodedata.category(char) in steers for char in shown)
    turns = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    assert not any(unicodedata.bidirectional(char) in turns for char in shown)
    assert printable(shown) == shown


@settings(max_examples=25)
@given(nasty, nasty)
def test_no_view_lets_control_characters_through(said: str, reply: str):
    events = [
        *turn(1, said, [reply], "interrupted", "some of it"),
        ToolCall(2, "c", "\x1b[2J", {"\x07": "\x1b"}),
        Notice(reply),
    ]
    out, err = io.StringIO(), io.StringIO()
    for view in (PlainView(out), JsonView(out, err)):
        for event in events:
            view.show(event)
    text = (out.getvalue() + err.getvalue() + CURSOR.sub("", STYLE.sub("", live(events)))).replace(
        "\n", ""
    )
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in text)


@given(nasty, st.integers(0, 20))
def test_a_reply_is_split_behind_whole_words(text: str, count: int):
    heard, unheard = split_after(text, count)
    assert f"{heard} {unheard}".split() == text.split()
    assert len(heard.split()) == min(count, len(text.split()))
