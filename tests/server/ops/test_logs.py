"""Logs: one record is one line, whatever is in it, and what is not to be logged is not there."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.server.access.auth import KEY_PROTOCOL
from voiceloop.server.ops.logs import MAX_TEXT, MAX_TRACEBACK, TRANSCRIPTS, Formatter, start

pytestmark = pytest.mark.pure

KEY = "correct-horse-battery-staple"
FORGERIES = [
    "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\0", "\b", "\x1b[2J",
    "\x1b]0;title\x07", "\u202e", "\u2066", "\ud800", "\udfff", "\\n",
    '"}\n{"level": "error"', "%s",
]  # fmt: skip
hostile = st.one_of(
    st.text(), st.lists(st.one_of(st.sampled_from(FORGERIES), st.text())).map("".join)
)
fields = st.dictionaries(
    st.sampled_from(["session", "key", "time", "level", "logger", "exception", "reason"]),
    st.one_of(hostile, st.integers(), st.floats(), st.booleans(), st.none(), st.binary()),
)


def line(formatter: Formatter, message: str, *args: object, **extra: object) -> Any:
    """What `formatter` makes of a record, read back."""
    made = logging.LogRecord("voiceloop.server", logging.INFO, __file__, 1, message, args, None)
    vars(made).update(extra)
    made.created = 1_769_860_800.1234
    written = formatter.format(made)
    assert written.isascii()
    assert written.isprintable()
    return json.loads(written)


def logged(message: str, *args: object, **extra: object) -> Any:
    return line(Formatter(), message, *args, **extra)


# --- one line, and what is in it ----------------------------------------------------------------


def test_a_record_is_an_object_with_its_fields() -> None:
    assert logged("session %d began", 3, session=3, key=None, wait_s=0.1234567) == {
        "time": "2026-01-31T12:00:00.123Z",
        "level": "info",
        "logger": "voiceloop.server",
        "message": "session 3 began",
        "session": 3,
        "key": None,
        "wait_s": 0.123457,
    }


@given(hostile, fields)
def test_no_text_can_write_a_line_of_its_own(text: str, extra: dict[str, object]) -> None:
    written = logged("%s", text, **extra)
    assert written["level"] == "info"
    assert written["logger"] == "voiceloop.server"
    if not any(mark in text.lower() for mark in ("key", "token", "secret", "bearer")):
        read_back = json.loads(json.dumps(text[:MAX_TEXT]))  # two halves of a character are one
        assert written["message"].startswith(read_back)
    for name, value in extra.items():
        shown = written[f"{name}_" if name in ("time", "level", "logger", "exception") else name]
        assert type(shown) in (str, type(value))


def raised(error: Exception) -> Any:
    try:
        raise error
    except type(error):
        return logged("it failed", exc_info=sys.exc_info())


def test_a_traceback_is_one_text_whose_both_ends_are_kept() -> None:
    shown = raised(ValueError("what was wrong\nand more"))["exception"]
    assert shown.startswith("Traceback (most recent call last):\n")
    assert shown.endswith("ValueError: what was wrong\nand more")
    shown = raised(ValueError("a" * 99_999 + "the end"))["exception"]
    assert shown.startswith("Traceback")
    assert shown.endswith("the end")
    assert len(shown) < MAX_TRACEBACK + 10


# --- what is not there --------------------------------------------------------------------------


@pytest.mark.parametrize("field", sorted(TRANSCRIPTS))
def test_what_was_said_is_logged_where_it_was_asked_for(field: str) -> None:
    assert logged("turn", **{field: "my secret plan"})[field] == "(14 characters)"
    shown = line(Formatter(transcripts=True), "turn", **{field: "my secret plan"})
    assert shown[field] == "my secret plan"


@given(st.one_of(st.binary(), st.lists(st.integers()), st.builds(object)))
def test_audio_and_whatever_may_hold_speech_is_never_logged(value: object) -> None:
    for transcripts in (False, True):
        shown = line(Formatter(transcripts=transcripts), "turn", payload=value)
        assert shown["payload"] == f"({type(value).__name__})"
    assert logged("turn", pcm=np.zeros(3))["pcm"] == "(ndarray)"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {KEY}",
        f"BEARER   {KEY} was sent",
        f"< Sec-WebSocket-Protocol: realtime, {KEY_PROTOCOL}{KEY}, x",
        f"invalid HTTP request line: GET /v1/realtime?api_key={KEY} HTTP/1.1",
        f"/?access_token={KEY}&model=x",
        f"/?client_secret={KEY}",
        f'{{"a": "{KEY_PROTOCOL}{KEY}"}}',
        f"{'x' * (MAX_TEXT - 20)} key={KEY}",
    ],
)
def test_no_key_gets_in_by_any_way(text: str) -> None:
    for written in (logged("%s", text), logged("x", reason=text), raised(ValueError(text))):
        assert KEY[:8] not in json.dumps(written)
        assert KEY[-8:] not in json.dumps(written)


# --- starting -----------------------------------------------------------------------------------


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    loggers = [logging.getLogger(name) for name in ("voiceloop", "websockets")]
    before = [logger.level for logger in loggers]
    yield io.StringIO()
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def test_at_every_level_websockets_shows_neither_headers_nor_frames(stream: io.StringIO) -> None:
    handler = start(stream, Formatter(), level=logging.DEBUG)
    try:
        logging.getLogger("voiceloop.server").debug("began", extra={"session": 1})
        logging.getLogger("websockets.server").debug("< Authorization: Bearer %s", KEY)
        logging.getLogger("websockets.server").info("connection open")
        logging.getLogger("websockets.server").error("handler failed\n{}")
    finally:
        logging.getLogger().removeHandler(handler)
    lines = [json.loads(each) for each in stream.getvalue().splitlines()]
    assert [each["message"] for each in lines] == ["began", "handler failed\n{}"]
    assert lines[0]["session"] == 1


def test_what_a_tool_server_writes_besides_is_one_line_without_a_traceback(
    stream: io.StringIO,
) -> None:
    handler = start(stream, Formatter())
    try:
        try:
            json.loads("Starting server on stdio...")
        except ValueError:
            logging.getLogger("mcp.client.stdio").exception("Failed to parse JSONRPC message")
    finally:
        logging.getLogger().removeHandler(handler)
    (told,) = [json.loads(each) for each in stream.getvalue().splitlines()]
    assert told["message"] == "Failed to parse JSONRPC message" and "exception" not in told
