"""The parser that makes events of a client from its messages.

If a message is not a valid event, the parser raises ProtocolError with the reason and the name of
the wrong parameter. No message makes it raise another error.

Messages come from strangers. So depth and number of values are limited before anything is built:
they are counted in the text without its strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal, NoReturn, cast

import msgspec

from voiceloop.errors import ProtocolError
from voiceloop.settings import schema
from voiceloop.settings.schema import JSON, LONGEST_NAME, Mistake, Path, read, shown, tag_of
from voiceloop.wire.client_events import (
    CLIENT_EVENTS,
    ClientEvent,
    InputAudioAppend,
    ItemCreate,
    ResponseCreate,
    SessionUpdate,
)
from voiceloop.wire.items import PARTS, AudioBytes, Item, ItemReference, Message
from voiceloop.wire.settings import MOST_TOOLS, FunctionTool

MAX_CHARACTERS = 4 * 2**20
"""Maximum length of a message, in characters: enough for 65 s of PCM16 in base64, or for 393 s of
G.711."""
MAX_DEPTH = 32
"""Maximum number of levels of nested objects and lists in a message."""
MAX_VALUES = 20_000
"""Maximum number of values in a message."""
MAX_INTEGER = 2**53
"""Largest absolute value of an integer. JavaScript does not represent larger ones exactly."""
MAX_BYTES = MAX_CHARACTERS // 4 * 3
"""Maximum size of a binary message, in bytes. In base64 this audio would fill the longest text
message."""
TOOLS: Path = ("session", "tools")
"""The path of the only setting of which single entries are left out."""
UNSUPPORTED = {
    "output_audio_buffer.clear": "it is for WebRTC; send response.cancel, and drop what you hold",
    "transcription_session.update": "send session.update with a session of type `transcription`",
}
"""Types of events that OpenAI's API has and voiceloop lacks, each with the hint for the client."""


def _raised(error: ProtocolError) -> NoReturn:
    raise error


def parse(text: str, refuse: Callable[[ProtocolError], None] = _raised) -> ClientEvent:
    """Parse a text message.

    Raises ProtocolError for a message that is no valid event. The error has the client's id of the
    event, if the message has a valid id. For each invalid setting in a `session.update`, `refuse`
    is called with the error. If `refuse` returns, the setting is left out, and the rest is parsed;
    of `tools` only the invalid entries are left out.
    By default `refuse` raises the error.
    """
    message = parse_object(text)
    event_id = message.get("event_id")
    named = event_id if isinstance(event_id, str) and len(event_id) <= 512 else None

    def refused(error: ProtocolError) -> ProtocolError:
        error.event_id = named
        return error

    try:
        kind = _kind(message)
        message = schema.tidied(kind, message)
        while True:
            try:
                return _event(kind, message)
            except Mistake as mistake:
                setting = _setting(message, mistake.path)
                if kind is not SessionUpdate or setting[:1] != ("session",) or len(setting) < 2:
                    raise
                in_tool = setting == TOOLS and len(mistake.path) > len(TOOLS)
                if in_tool and len(message["session"]["tools"]) <= MOST_TOOLS:
                    message = _with_good_tools(message, lambda one: refuse(refused(_refusal(one))))
                else:
                    refuse(refused(_refusal(mistake)))
                    message = _without(message, setting)
    except Mistake as mistake:
        raise refused(_refusal(mistake)) from None
    except ProtocolError as error:
        raise refused(error) from None


def _event(kind: Any, message: dict[str, Any]) -> ClientEvent:
    """Convert `message` to an event of class `kind`. Raises Mistake."""
    event = read(kind, message, JSON)
    if isinstance(event, ItemCreate):
        _check_parts(event.item, ("item",))
    if isinstance(event, ResponseCreate) and event.response and event.response.input:
        for index, item in enumerate(event.response.input):
            _check_parts(item, ("response", "input", index))
    return event


def _setting(message: dict[str, Any], path: Path) -> Path:
    """Return the path of the setting to leave out because of a mistake at `path`. This is the part
    of `path` that exists in `message`. It ends at the first list, because lists are left out as a
    whole."""
    keys, value = list[str | int](), cast("object", message)
    for step in path:
        if not isinstance(value, dict) or step not in value:
            break
        keys.append(step)
        value = cast("dict[str | int, object]", value)[step]
    return tuple(keys)


def _with_good_tools(message: dict[str, Any], refuse: Callable[[Mistake], None]) -> dict[str, Any]:
    """Return a copy of `message` without the tools that are invalid. If none is left, the setting
    is left out too, so that the session keeps its tools. `refuse` is called with each mistake."""
    good = list[object]()
    for index, tool in enumerate(cast("list[object]", message["session"]["tools"])):
        try:
            read(FunctionTool, tool, JSON)
            good.append(tool)
        except Mistake as mistake:
            mistake.path = (*TOOLS, index, *mistake.path)
            refuse(mistake)
    kept = _without(message, TOOLS)
    return {**kept, "session": {**kept["session"], "tools": good}} if good else kept


def _without(value: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a copy of `value` without the key at `path`."""
    key, *rest = path
    if not rest:
        return {name: entry for name, entry in value.items() if name != key}
    return {**value, str(key): _without(value[str(key)], tuple(rest))}


def parse_binary(data: bytes) -> InputAudioAppend:
    """Wrap a binary message in an event. Raises ProtocolError if it is too long."""
    if len(data) > MAX_BYTES:
        raise ProtocolError(
            f"the message has {len(data)} bytes, and {MAX_BYTES} are the most",
            "send long audio in pieces",
        )
    return InputAudioAppend(AudioBytes(data))


def _kind(message: dict[str, Any]) -> Any:
    """Return the class of the event for the `type` of `message`. Raises Mistake or ProtocolError if
    the type is missing or unknown."""
    if "type" not in message:
        raise schema.missing(("type",))
    name = message["type"]
    if isinstance(name, str) and name in CLIENT_EVENTS:
        return CLIENT_EVENTS[name]
    if isinstance(name, str) and name in UNSUPPORTED:
        raise ProtocolError(
            f"{name} is not supported", UNSUPPORTED[name], code="unsupported_event", param="type"
        )
    near = schema.nearest(name, CLIENT_EVENTS) if isinstance(name, str) else None
    raise ProtocolError(
        f"type must be that of an event, not {shown(name)}",
        f"did you mean '{near}'?" if near else "docs/protocol.md lists all events",
        param="type",
    )


def _check_parts(item: Item | ItemReference, at: Path) -> None:
    """Raise Mistake if `item` is a message and its role does not allow the type of one of its
    parts. `at` is the path of the item."""
    if isinstance(item, Message):
        choices = tuple(map(tag_of, PARTS[item.role]))
        for index, part in enumerate(item.content):
            if tag_of(part) not in choices:
                path = (*at, "content", index, "type")
                raise schema.mismatch(Literal[choices], tag_of(part), JSON, path)


def _refusal(mistake: Mistake) -> ProtocolError:
    """Return the error for the client. It names the parameter in the notation of the API:
    `item.content[0]`."""
    param = _named(mistake.path)
    code = mistake.code
    hint = "docs/protocol.md lists what each event takes"
    return ProtocolError(f"{param} {mistake}", mistake.hint or hint, code=code, param=param)


def _named(path: Path) -> str:
    """Write a path as the name of a parameter: `item.content[0]`."""
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            # The client may have made this key up: keep the error to one short line.
            key = step if step.isprintable() else json.dumps(step)[1:-1]
            key = key if len(key) <= LONGEST_NAME else f"{key[: LONGEST_NAME - 3]}..."
            name += f".{key}" if name else key
    return name


# Possessive quantifiers: a string without an end costs one pass, not one pass per quote.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def parse_object(text: str) -> dict[str, Any]:
    """Parse `text` as a JSON object.

    Raises ProtocolError if it is not JSON, is not an object, or exceeds a limit of this module.
    """
    if len(text) > MAX_CHARACTERS:
        raise refused(
            f"the message has {len(text)} characters, and {MAX_CHARACTERS} are the most",
            "send long audio in pieces",
        )
    _measure(text)
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise refused(f"the message is not JSON: {error}", "send one JSON object") from None
    if not isinstance(value, dict):
        raise refused("the message is not a JSON object", "send one JSON object")
    _check_integers(cast("dict[str, Any]", value))
    return cast("dict[str, Any]", value)


def _check_integers(value: object) -> None:
    """Raise ProtocolError if `value` is, or contains, an integer beyond `MAX_INTEGER`."""
    if isinstance(value, dict):
        value = list(cast("dict[str, object]", value).values())
    if isinstance(value, list):
        for one in cast("list[object]", value):
            _check_integers(one)
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise refused(f"the number {shown(str(value))} is too large")


def refused(message: str, hint: str = "") -> ProtocolError:
    """Return the error for a message that is not JSON, or is refused by this module."""
    return ProtocolError(message, hint, code="invalid_json")


def _measure(text: str) -> None:
    """Raise ProtocolError if `text` is nested too deep or has too many values. Brackets and commas
    within strings do not count."""
    if sum(map(text.count, ",[{")) <= MAX_DEPTH:
        return  # most messages pass even when characters inside strings are counted
    # A value has at most 4 quotes: its key's and its own. This check also bounds the regex's work.
    if text.count('"') - text.count('\\"') > 4 * MAX_VALUES:
        raise refused(f"the message has more than {MAX_VALUES} values")
    skeleton = _STRING.sub("", text)
    if skeleton.count(",") + skeleton.count("[") + skeleton.count("{") > MAX_VALUES:
        raise refused(f"the message has more than {MAX_VALUES} values")
    depth = 0
    for bracket in _BRACKET.findall(skeleton):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise refused(f"the message is nested deeper than {MAX_DEPTH} levels")
