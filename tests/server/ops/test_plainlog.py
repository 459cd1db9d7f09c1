"""The log for a person: plain sentences, one line each, whatever is in them."""

from __future__ import annotations

import io
import logging
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.server.ops.test_logs import KEY, hostile
from voiceloop.server.ops.logs import (
    VISIT,
    Formatter,
    PlainFormatter,
    TurnLog,
    start,
)
from voiceloop.trace.record import Mark
from voiceloop.types import Event, TokenBurst, Transcript, TurnTrace, Word

pytestmark = pytest.mark.pure

TURN: dict[str, Any] = {
    "visit": 3,
    "turn": 1,
    "outcome": "done",
    "transcript": "Hello there.",
    "reply": "Hi.",
    "heard": "Hi.",
    "voice_to_voice_ms": 612.3,
}
TOLD: list[tuple[str, dict[str, Any], str]] = [
    ("loading", {"models": "whisper tiny.en, espeak"}, "loading whisper tiny.en, espeak …"),
    ("a visit begins", {"visit": 3, "client": "browser"}, "visit 3 begins: a browser"),
    (
        "a conversation goes on",
        {"visit": 3, "of": 2},
        "visit 3 goes on with the conversation of visit 2",
    ),
    ("a message is answered", {"visit": 3, "text": "Hello"}, "visit 3 wrote 5 characters"),
    (
        "a turn is over",
        TURN,
        "visit 3 said 12 characters, was answered 3 characters after 0.6 s",
    ),
    (
        "a turn is over",
        TURN | {"transcript": "", "voice_to_voice_ms": None, "outcome": "interrupted"},
        "visit 3 was answered 3 characters (interrupted)",
    ),
    (
        "a turn is over",
        TURN | {"reply": "", "outcome": "failed", "voice_to_voice_ms": None},
        "visit 3 said 12 characters, was not answered (failed)",
    ),
    (
        "a visit is over",
        {"visit": 3, "lasted_s": 129.6, "turns": 4, "why": "", "may_return": True},
        "visit 3 ends after 2 min 10 s, 4 turns; it may come back",
    ),
    (
        "a visit is over",
        {"visit": 3, "lasted_s": 12.0, "turns": 1, "why": "it reads slowly", "may_return": False},
        "visit 3 ends after 12 s, 1 turn: it reads slowly",
    ),
    ("a request was refused", {"why": "send a key"}, "somebody was refused: send a key"),
    ("ending", {"clients": 0}, "goodbye"),
    ("ending", {"clients": 2}, "goodbye to 2 clients"),
]


def record(message: str, level: int = logging.INFO, *args: object, **extra: object) -> Any:
    made = logging.LogRecord("voiceloop.server", level, __file__, 1, message, args, None)
    vars(made).update(extra)
    return made


def line(made: logging.LogRecord, *, transcripts: bool = False) -> str:
    """What is written of a record, behind the time of day."""
    clock, _, text = PlainFormatter(transcripts=transcripts).format(made).partition("  ")
    assert re.fullmatch(r"\d\d:\d\d:\d\d", clock)
    return text


@pytest.mark.parametrize(("message", "fields", "told"), TOLD)
def test_what_happened_is_told_in_a_sentence(
    message: str, fields: dict[str, Any], told: str
) -> None:
    assert line(record(message, **fields)) == told


def test_what_was_said_is_shown_where_it_was_asked_for() -> None:
    made = record("a turn is over", **TURN)
    assert line(made, transcripts=True) == (
        'visit 3 said "Hello there.", was answered "Hi." after 0.6 s'
    )


@given(hostile, st.booleans())
def test_no_text_can_write_a_line_of_its_own(text: str, transcripts: bool) -> None:
    for made in (
        record("a turn is over", **{**TURN, "transcript": text, "reply": text}),
        record("a message is answered", visit=1, text=text),
        record("a request was refused", why=text),
        record("%s", logging.WARNING, *[text]),
        record(text, logging.ERROR),
    ):
        shown = line(made, transcripts=transcripts)
        assert "\n" not in shown and "\x1b" not in shown and "\u202e" not in shown
        assert KEY[:8] not in shown


def test_a_warning_is_told_with_its_traceback_and_without_keys() -> None:
    try:
        raise ValueError(f"Bearer {KEY} was wrong")
    except ValueError:
        made = record("a session broke", logging.ERROR)
        made.exc_info = sys.exc_info()
    text = line(made)
    assert text.startswith("error: a session broke\nTraceback")
    assert KEY[:8] not in text


def test_what_a_task_logs_says_whose_visit_it_serves() -> None:
    stream = io.StringIO()
    before = logging.getLogger("voiceloop").level
    handler = start(stream, Formatter())
    token = VISIT.set(7)
    try:
        logging.getLogger("voiceloop.server").info("it broke")
    finally:
        VISIT.reset(token)
        logging.getLogger().removeHandler(handler)
        logging.getLogger("voiceloop").setLevel(before)
    assert '"visit": 7' in stream.getvalue()


def test_a_turn_is_logged_once_with_all_that_was_said(caplog: pytest.LogCaptureFixture) -> None:
    shown, words = list[Event](), (Word("Hello", 0, 1), Word("there.", 1, 2))
    log = TurnLog(shown.append)
    events: list[Event] = [
        Transcript(1, 1, words, final=True),
        TokenBurst(1, (1,), "Hi "),
        TokenBurst(1, (2,), "you."),
        TurnTrace(2, outcome="abandoned"),
        TurnTrace(1, {Mark.ENDPOINT: 1.0}, heard="Hi", outcome="interrupted"),
    ]
    with caplog.at_level(logging.INFO, logger="voiceloop"):
        for event in events:
            log.show(event)
    assert shown == events
    (told,) = caplog.records
    fields = vars(told)
    assert (fields["turn"], fields["outcome"], fields["transcript"]) == (
        1,
        "interrupted",
        "Hello there.",
    )
    assert (fields["reply"], fields["heard"]) == ("Hi you.", "Hi")
