"""The session's settings: what an update changes, and what it leaves."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.values import messages, objects, written
from voiceloop.settings.schema import tag_of
from voiceloop.wire.client_events import ResponseCreate, SessionUpdate
from voiceloop.wire.parsing import parse
from voiceloop.wire.settings import (
    PcmaFormat,
    PcmFormat,
    PcmuFormat,
    SemanticVad,
    ServerVad,
    SessionSettings,
    Transcription,
)

pytestmark = pytest.mark.pure


def update(session: dict[str, Any]) -> SessionUpdate:
    event = parse(json.dumps({"type": "session.update", "session": session}))
    assert isinstance(event, SessionUpdate)
    return event


def listening(settings: SessionSettings, **keys: object) -> SessionSettings:
    """`settings` after an update of `audio.input`."""
    return settings.updated(update({"type": "realtime", "audio": {"input": keys}}).session)


DEFAULTS = {
    tag_of(kind): written(kind())
    for kind in (ServerVad, SemanticVad, PcmFormat, PcmuFormat, PcmaFormat)
}


def merged(base: Any, change: Any, path: str = "") -> Any:
    """The rule, on JSON: an object changes key by key, anything else as a whole.

    Turn detection or a format of another type, like transcription that was off, begins from its
    defaults.
    """
    whole = ("tools", "tool_choice", "metadata")
    if not isinstance(change, dict) or path in whole:
        return change
    if path in ("turn_detection", "format") and (base is None or base["type"] != change["type"]):
        base = DEFAULTS[change["type"]]
    if path == "transcription" and base is None:
        base = written(Transcription())
    result = copy.deepcopy(base)
    for key, value in change.items():
        result[key] = merged(base.get(key), value, key)
    return result


@given(objects(SessionSettings), st.lists(messages(SessionUpdate), min_size=1, max_size=3))
def test_an_update_changes_what_it_gives_and_nothing_else(
    settings: SessionSettings, changes: list[dict[str, Any]]
) -> None:
    expected = written(settings)
    for change in changes:
        settings = settings.updated(update(change["session"]).session)
        given_tools = change["session"].get("tools", ())
        expected = merged(expected, change["session"])
        if given_tools:
            full = {"type": "function", "description": "", "parameters": {}}
            expected["tools"] = [full | tool for tool in given_tools]
        assert written(settings) == expected
    again = settings.updated(update(changes[-1]["session"]).session)
    assert again == settings


@given(objects(SessionSettings), messages(ResponseCreate))
def test_a_response_is_as_the_session_but_for_its_overrides(
    settings: SessionSettings, message: dict[str, Any]
) -> None:
    event = parse(json.dumps(message))
    assert isinstance(event, ResponseCreate)
    plainly = settings.response()
    shared = ["instructions", "output_modalities", "tools", "tool_choice", "max_output_tokens"]
    shared += ["parallel_tool_calls", "reasoning"]
    assert [getattr(plainly, name) for name in shared] == [getattr(settings, n) for n in shared]
    assert plainly.audio.output.voice == settings.audio.output.voice
    assert (plainly.conversation, plainly.metadata) == ("auto", None)
    found, overrides = written(settings.response(event.response)), message.get("response") or {}
    for key, value in written(plainly).items():
        if key not in overrides:
            assert found[key] == value
        elif key == "reasoning":
            assert found[key] == value | overrides[key]
        elif key not in ("audio", "tools", "input", "tool_choice"):
            assert found[key] == overrides[key]
    output = overrides.get("audio", {}).get("output", {})
    assert found["audio"]["output"]["voice"] == output.get("voice", plainly.audio.output.voice)


def test_turn_detection_keeps_its_values_until_its_type_changes() -> None:
    settings = listening(SessionSettings(), turn_detection={"type": "server_vad", "threshold": 0.7})
    settings = listening(
        settings, turn_detection={"type": "server_vad", "silence_duration_ms": 200}
    )
    assert settings.audio.input.turn_detection == ServerVad(0.7, silence_duration_ms=200)
    settings = listening(settings, turn_detection={"type": "semantic_vad", "eagerness": "low"})
    assert settings.audio.input.turn_detection == SemanticVad("low")
    settings = listening(settings, turn_detection={"type": "server_vad"})
    assert settings.audio.input.turn_detection == ServerVad()
