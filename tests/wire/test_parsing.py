"""Reading what a stranger sends: an event or one clear error, whatever the text."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from tests.wire.stranger import damaged
from tests.wire.values import JSON, TEXT, messages
from voiceloop.errors import ProtocolError
from voiceloop.settings.schema import hints_of, is_struct, marks, members
from voiceloop.wire.client_events import (
    CLIENT_EVENTS,
    InputAudioAppend,
    ResponseCreate,
    SessionUpdate,
)
from voiceloop.wire.items import AudioBytes
from voiceloop.wire.parsing import (
    MAX_BYTES,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_VALUES,
    parse,
    parse_binary,
    parse_object,
)
from voiceloop.wire.settings import FunctionTool, SessionSettings, Transcription

pytestmark = pytest.mark.pure

EXAMPLES = 100_000
"""Texts that the parser is to survive, of each sort; a tenth of them in the quick test."""
SIZES = [
    pytest.param(EXAMPLES // 10, id="quick"),
    pytest.param(EXAMPLES, id="all", marks=pytest.mark.full),
]
MISSING = "missing_required_parameter"
UNKNOWN = "unknown_parameter"
UNSUPPORTED = "unsupported_parameter"
CODES = {
    *("invalid_json", "invalid_type", "invalid_value", MISSING),
    *(UNKNOWN, UNSUPPORTED, "unsupported_event"),
}
ANY_VALID = st.one_of([messages(kind) for kind in CLIENT_EVENTS.values()])


def refusal(message: object) -> ProtocolError:
    """Why `message`, a text or what is to be written as JSON, is refused."""
    with pytest.raises(ProtocolError) as caught:
        parse(message if isinstance(message, str) else json.dumps(message))
    return caught.value


def survives(text: str) -> bool:
    """Whether `text` is an event; otherwise its error is one a person and a program can read."""
    try:
        event = parse(text)
    except ProtocolError as error:
        assert error.message.isprintable() and len(error.message) < 1000, error.message
        assert error.hint.isprintable() and len(error.hint) < 200
        assert error.code in CODES
        assert error.param is None or len(error.param) < 300
        return False
    assert CLIENT_EVENTS[json.loads(text)["type"]] is type(event)
    return True


# --- any text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_a_damaged_message_is_an_event_or_an_error(size: int) -> None:
    random = Random(size)
    valid = sum(survives(damaged(random)) for _ in range(size))
    assert size // 20 < valid < size // 2  # the damage is neither harmless nor all there is


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_an_error(text: str) -> None:
    assert not survives(text)


@given(JSON)
def test_any_json_is_an_event_or_an_error(value: object) -> None:
    survives(json.dumps(value))


@given(ANY_VALID, st.booleans())
def test_a_valid_message_is_an_event_however_it_is_written(
    message: dict[str, Any], ascii_only: bool
) -> None:
    text = json.dumps(message, ensure_ascii=ascii_only, indent=1)
    assert type(parse(text)) is CLIENT_EVENTS[message["type"]]
    assert parse(text) == parse(json.dumps(message))


@given(ANY_VALID, st.data())
def test_a_value_of_a_wrong_type_is_named(message: dict[str, Any], data: st.DataObject) -> None:
    leaves = [path for path in paths(message) if "parameters" not in path]
    path = data.draw(st.sampled_from(leaves))
    broken = changed(message, path, {"surprise": 1})
    assert str(refusal(broken).param).startswith(written(path))


@given(ANY_VALID, st.data())
def test_a_key_that_nobody_knows_is_named(message: dict[str, Any], data: st.DataObject) -> None:
    objects = [path[:-1] for path in paths(message) if isinstance(path[-1], str)]
    free = ("parameters", "metadata")
    path = data.draw(st.sampled_from([one for one in objects if not set(free) & set(one)]))
    key = data.draw(st.text("abc", min_size=1, max_size=8).map("zz".__add__))
    error = refusal(changed(message, (*path, key), 1))
    assert (error.code, error.param) == (UNKNOWN, written((*path, key)))


Path = tuple[str | int, ...]


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    """Where the values are that are neither objects nor lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))
    else:
        yield path


def changed(message: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    """A copy of `message` with another value at `path`."""
    result = copy.deepcopy(message)
    holder: Any = result
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return result


def written(path: Path) -> str:
    """A path as errors name it: on one line, whatever the peer calls its keys."""
    text = ""
    for step in path:
        shown = step if str(step).isprintable() else json.dumps(step)[1:-1]
        text += f".{shown}" if isinstance(step, str) else f"[{shown}]"
    return text.removeprefix(".")


# --- limits ---------------------------------------------------------------------------------------


def depth(value: object) -> int:
    """How deep objects and lists are nested."""
    if not isinstance(value, (dict, list)):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0)


@given(JSON, st.integers(MAX_DEPTH - 8, MAX_DEPTH + 2), TEXT)
def test_depth_counts_brackets_and_not_those_in_texts(value: object, wraps: int, text: str) -> None:
    nested: Any = {"brackets": text + '["{[', "value": value}
    for _ in range(wraps):
        nested = {"inner": nested}
    written = json.dumps(nested)
    if depth(nested) > MAX_DEPTH:
        with pytest.raises(ProtocolError, match="nested deeper"):
            parse_object(written)
    else:
        assert parse_object(written) == nested


def test_the_number_of_values_is_limited() -> None:
    assert len(parse_object(json.dumps({"a": [0] * (MAX_VALUES - 10)}))["a"]) == MAX_VALUES - 10
    for many in ([0] * MAX_VALUES, [[]] * MAX_VALUES, [""] * 3 * MAX_VALUES):
        assert "more than" in refusal({"a": many}).message


def test_the_length_is_limited_before_anything_is_read() -> None:
    most = {"a": "x" * (MAX_CHARACTERS - 9)}
    assert len(json.dumps(most)) == MAX_CHARACTERS
    assert parse_object(json.dumps(most)) == most
    assert "characters" in refusal("x" * (MAX_CHARACTERS + 1)).message


@pytest.mark.parametrize(
    "text",
    [
        '"' * MAX_CHARACTERS,
        '"' + '\\"' * (MAX_CHARACTERS // 2 - 1),
        "[" * MAX_CHARACTERS,
        '{"a":' * (MAX_CHARACTERS // 5),
        "9" * MAX_CHARACTERS,
        '{"a":' + "9" * 100_000 + "}",
        '{"a":1' + "0" * 400 + ".0}",
        '{"type":"' + "x" * 1_000_000 + '"}',
        '{"' + "x" * 1_000_000 + '":1,"type":"response.create"}',
        "\\" * MAX_CHARACTERS,
        "",
        " ",
        "\ufeff{}",
    ],
    ids=range(13),
)
def test_a_text_made_to_take_long_is_refused(text: str) -> None:
    assert not survives(text)


# --- JSON itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"type": NaN}', "is not JSON"),
        (f'{{"type": [{{"a": {10**30}}}]}}', f'number "{10**30}" is too large'),
        (f'{{"type": {-(2**53) - 1}}}', "is too large"),
        ('{"type": 1e400}', "is not JSON"),
        (f'{{"type": {"9" * 5000}}}', "is not JSON"),
        ('{"type": "\\ud800"}', "is not JSON"),
        ('{"\\udc00": 1}', "is not JSON"),
        ('{"type": "\ud800"}', "is not JSON"),
        ('{"type": "a\nb"}', "is not JSON"),
        ("[]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ("{", "is not JSON"),
        ("{}{}", "is not JSON"),
    ],
)
def test_what_is_no_json_object_is_refused(text: str, said: str) -> None:
    error = refusal(text)
    assert said in error.message
    assert error.code == "invalid_json"


def test_integers_that_javascript_holds_and_the_last_of_equal_keys_are_read() -> None:
    assert parse_object(f'{{"a": 1, "b": {-(2**53)}, "a": {2**53}}}') == {
        "a": 2**53,
        "b": -(2**53),
    }


# --- audio ----------------------------------------------------------------------------------------


@given(st.binary(max_size=300))
def test_audio_comes_as_text_and_as_bytes(pcm: bytes) -> None:
    text = base64.b64encode(pcm).decode()
    message = {"type": "input_audio_buffer.append", "audio": text}
    assert parse(json.dumps(message)) == parse_binary(pcm) == InputAudioAppend(AudioBytes(pcm))


@given(st.binary(min_size=1, max_size=60), st.data())
def test_damaged_audio_is_refused_or_is_what_an_encoder_makes(
    pcm: bytes, data: st.DataObject
) -> None:
    text = base64.b64encode(pcm).decode()
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("A=/+-_ \n\u00e9") | st.just(""))
    message = {"type": "input_audio_buffer.append", "audio": text[:at] + other + text[at + 1 :]}
    try:
        event = parse(json.dumps(message))
    except ProtocolError as error:
        assert error.param == "audio"
    else:
        assert isinstance(event, InputAudioAppend)
        assert base64.b64encode(event.audio).decode() == message["audio"]


def test_too_many_samples_are_refused() -> None:
    assert parse_binary(bytes(MAX_BYTES)).audio == bytes(MAX_BYTES)
    with pytest.raises(ProtocolError, match="are the most"):
        parse_binary(bytes(MAX_BYTES + 2))


# --- parameters -----------------------------------------------------------------------------------


def session(**keys: object) -> dict[str, object]:
    return {"type": "session.update", "session": {"type": "realtime", **keys}}


def listening(**keys: object) -> dict[str, object]:
    return session(audio={"input": keys})


def item(**keys: object) -> dict[str, object]:
    return {"type": "conversation.item.create", "item": keys}


@pytest.mark.parametrize(
    ("message", "param", "code", "hint"),
    [
        ({"type": 3}, "type", "invalid_value", ""),
        ({"type": "sesion.update"}, "type", "invalid_value", "'session.update'"),
        ({"type": "output_audio_buffer.clear"}, "type", "unsupported_event", "response.cancel"),
        (session(type="translation"), "session.type", "invalid_value", ""),
        (session(instructons=""), "session.instructons", UNKNOWN, "'instructions'"),
        (session(voice="alloy"), "session.voice", UNSUPPORTED, "audio.output.voice"),
        (session(output_modalities=[]), "session.output_modalities", "invalid_value", ""),
        (
            session(output_modalities=["audio", "text"]),
            *("session.output_modalities", "invalid_value", ""),
        ),
        (session(prompt={"id": "p"}), "session.prompt", "invalid_type", "instructions"),
        (session(max_output_tokens=0), "session.max_output_tokens", "invalid_value", ""),
        (session(tools=[{"type": "mcp"}]), "session.tools[0].type", "invalid_value", ""),
        (session(tools=[{"name": "a"}] * 129), "session.tools", "invalid_value", ""),
        (session(tool_choice="atuo"), "session.tool_choice", "invalid_value", ""),
        (session(tool_choice={"type": "mcp"}), "session.tool_choice.type", "invalid_value", ""),
        (
            session(voiceloop={"paus": True}),
            "session.voiceloop.paus",
            UNKNOWN,
            "'pause'",
        ),
        (
            listening(format={"type": "audio/pcm", "rate": 16000}),
            *("session.audio.input.format.rate", "invalid_value", ""),
        ),
        (
            listening(format={"type": "audio/opus"}),
            *("session.audio.input.format.type", "invalid_value", ""),
        ),
        (item(type="mcp_call"), "item.type", "invalid_value", ""),
        (item(type="message", role="tool"), "item.role", "invalid_value", ""),
        (
            item(type="message", role="user", content=[{"type": "input_image"}]),
            *("item.content[0].type", "invalid_value", ""),
        ),
        (
            item(type="message", role="system", content=[{"type": "input_audio"}]),
            *("item.content[0].type", "invalid_value", "'input_text'"),
        ),
        (
            {"type": "response.create", "response": {"input": [{"type": "item"}]}},
            *("response.input[0].type", "invalid_value", ""),
        ),
        (
            {
                "type": "response.create",
                "response": {
                    "input": [
                        {
                            "type": "message",
                            "role": "system",
                            "content": [{"type": "output_text", "text": "Hi"}],
                        }
                    ]
                },
            },
            *("response.input[0].content[0].type", "invalid_value", "'input_text'"),
        ),
        (session(reasoning={"effort": "lo"}), "session.reasoning.effort", "invalid_value", "'low'"),
        (
            {"type": "response.create", "response": {"reasoning": {"effort": "none"}}},
            *("response.reasoning.effort", "invalid_value", ""),
        ),
        (
            {"type": "response.create", "response": {"metadata": {"a" * 65: ""}}},
            *("response.metadata", "invalid_value", ""),
        ),
        (
            {
                "type": "response.create",
                "response": {"metadata": dict.fromkeys("abcdefghijklmnopq", "")},
            },
            *("response.metadata", "invalid_value", ""),
        ),
    ],
)
def test_a_wrong_parameter_is_named(message: object, param: str, code: str, hint: str) -> None:
    error = refusal(message)
    assert (error.param, error.code) == (param, code)
    assert hint in error.hint


TUNING: list[dict[str, Any]] = [
    session(truncation="disabled"),
    session(truncation={"type": "retention_ratio", "retention_ratio": 0.8}),
    session(include=["item.input_audio_transcription.logprobs"]),
    session(reasoning=None, parallel_tool_calls=None, temperature=0.8),
    session(tools=[{"type": "function", "name": "look", "strict": True}]),
    session(input_audio_noise_reduction={"type": "far_field"}),
    listening(noise_reduction={"type": "near_field"}),
    listening(transcription={"prompt": "", "keywords": ["Ann"], "delay": "low"}),
    {"type": "response.create", "response": {"temperature": 0.8, "parallel_tool_calls": None}},
    {"type": "response.create", "response": {"audio": {"output": {"speed": 0.8}}}},
]
"""What only tunes, and nothing comes of here."""


@pytest.mark.parametrize("message", TUNING, ids=str)
def test_what_only_tunes_is_taken_and_changes_nothing(message: dict[str, Any]) -> None:
    event = parse(json.dumps(message))
    if isinstance(event, SessionUpdate):
        tools = (FunctionTool("look"),) if "tools" in message["session"] else ()
        spoken = '"transcription"' in json.dumps(message)
        transcription = Transcription() if spoken else None
        expected = SessionSettings(tools=tools)
        assert expected.audio.input.transcription is None
        found = SessionSettings().updated(event.session)
        assert found.audio.input.transcription == transcription
        heard = msgspec.structs.replace(found.audio.input, transcription=None)
        audio = msgspec.structs.replace(found.audio, input=heard)
        assert msgspec.structs.replace(found, audio=audio) == expected
    else:
        assert isinstance(event, ResponseCreate)
        assert SessionSettings().response(event.response) == SessionSettings().response()


@given(messages(SessionUpdate), st.data())
def test_of_an_update_what_can_be_is_done_and_the_rest_is_told(
    message: dict[str, Any], data: st.DataObject
) -> None:
    good = parse(json.dumps(message))
    wrong: dict[str, tuple[tuple[str, ...], object]] = {
        "session.tool_choice": (("tool_choice",), "perhaps"),
        "session.max_output_tokens": (("max_output_tokens",), -1),
        "session.colour": (("colour",), "red"),
        "session.audio.input.format.rate": (
            ("audio", "input", "format"),
            {"type": "audio/pcm", "rate": 11_025},
        ),
        "session.tools[0].name": (("tools",), [{"type": "function", "name": 3}]),
        "session.voiceloop.pause": (("voiceloop", "pause"), "yes"),
        "session.audio.input.turn_detection.type": (
            ("audio", "input", "turn_detection"),
            {"threshold": 0.5},
        ),
    }
    chosen = data.draw(st.sets(st.sampled_from(sorted(wrong)), min_size=1))
    spoilt, left = copy.deepcopy(message), copy.deepcopy(message)
    for name in chosen:
        path, value = wrong[name]
        holder, kept = spoilt["session"], left["session"]
        for step in path[:-1]:
            holder, kept = holder.setdefault(step, {}), kept.setdefault(step, {})
        holder[path[-1]] = value
        kept.pop(path[-1], None)
    told: list[ProtocolError] = []
    found = parse(json.dumps({**spoilt, "event_id": "mine"}), told.append)
    assert {error.param for error in told} == chosen
    assert {error.event_id for error in told} == {"mine"}
    assert isinstance(found, SessionUpdate) and isinstance(good, SessionUpdate)
    rest = parse(json.dumps(left))
    assert isinstance(rest, SessionUpdate)
    assert SessionSettings().updated(found.session) == SessionSettings().updated(rest.session)


BAD_TOOLS: dict[str, object] = {
    ".type": {"type": "mcp", "server_label": "d", "server_url": "https://x.example"},
    ".name": {"type": "function"},
    ".parameters": {"name": "a", "parameters": []},
    ".colour": {"name": "a", "colour": "red"},
    "": "a",
}


@given(st.lists(st.sampled_from(["good", *BAD_TOOLS]), max_size=128))
def test_an_invalid_tool_costs_no_other(kinds: list[str]) -> None:
    given = [
        {"name": f"tool_{at}"} if kind == "good" else BAD_TOOLS[kind]
        for at, kind in enumerate(kinds)
    ]
    told: list[ProtocolError] = []
    found = parse(json.dumps(session(tools=given, instructions="Be brief.")), told.append)
    bad = {at: kind for at, kind in enumerate(kinds) if kind != "good"}
    assert [error.param for error in told] == [
        f"session.tools[{at}]{kind}" for at, kind in bad.items()
    ]
    former = SessionSettings(tools=(FunctionTool("former"),))
    assert isinstance(found, SessionUpdate)
    updated = former.updated(found.session)
    names = [f"tool_{at}" for at in range(len(kinds)) if at not in bad]
    assert [tool.name for tool in updated.tools] == (names or ["former"] * bool(kinds))
    assert updated.instructions == "Be brief."


# A field with bounds, as the objects and keys that lead to it.
Trail = tuple[tuple[Any, str], ...]


def bounded(hint: Any, trail: Trail = ()) -> Iterator[tuple[Trail, Meta]]:
    """Every number within `hint` that has bounds."""
    for mark in marks(hint):
        if mark.ge is not None:
            yield trail, mark
    for member in members(hint):
        for name, inner in hints_of(member).items() if is_struct(member) else ():
            yield from bounded(inner, (*trail, (member, name)))
        for entry in get_args(member) if get_origin(member) is tuple else ():
            if entry is not Ellipsis:
                yield from bounded(entry, trail)


def along(trail: Trail, value: object) -> Any:
    """The smallest JSON with `value` at the end of `trail`."""
    known = {"item_id": "i", "content_index": 0, "audio_end_ms": 0, "audio_ms": 0}
    known["type"] = "realtime"  # of a session
    for kind, name in reversed(trail):
        others = {key: known[key] for key in hints_of(kind) if key in known}
        config = kind.__struct_config__
        tags = {config.tag_field: config.tag} if config.tag_field else {}
        value = {**tags, **others, name: value}
    return value


BOUNDED = [found for kind in CLIENT_EVENTS.values() for found in bounded(kind)]


def test_the_bounds_that_the_api_documents_are_there() -> None:
    assert {trail[-1][1] for trail, _ in BOUNDED} == {
        *("threshold", "prefix_padding_ms", "silence_duration_ms", "idle_timeout_ms"),
        *("max_output_tokens", "content_index", "audio_end_ms", "audio_ms", "speed"),
    }
