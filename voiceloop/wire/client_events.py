"""The events that a client can send, and the parser that makes them from messages.

If a message is not a valid event, the parser raises ProtocolError with the reason and the name of
the wrong parameter. No message makes it raise another error. This module does not carry events out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, NoReturn, cast, get_args

from voiceloop.errors import ProtocolError
from voiceloop.settings.schema import (
    JSON,
    LONGEST_NAME,
    Count,
    Mistake,
    Path,
    mismatch,
    missing,
    nearest,
    read,
    shown,
    tag_of,
    tidied,
)
from voiceloop.wire.extensions import (
    OpenConversation,
    Played,
    Resume,
    TokenReceived,
    UseLlmServer,
)
from voiceloop.wire.items import (
    PARTS,
    AudioBytes,
    ClientEventBase,
    Item,
    ItemId,
    ItemReference,
    Message,
)
from voiceloop.wire.jsontext import MAX_CHARACTERS, parse_object
from voiceloop.wire.settings import MOST_TOOLS, FunctionTool, ResponseChanges, SessionChanges

MAX_BYTES = MAX_CHARACTERS // 4 * 3
"""Maximum size of a binary message, in bytes. In base64 this audio would fill the longest text
message."""


class SessionUpdate(ClientEventBase, frozen=True, tag="session.update"):
    """Change settings of the session. Absent settings keep their values. Answered by
    `session.updated`."""

    session: SessionChanges
    """The settings to change."""


class InputAudioAppend(ClientEventBase, frozen=True, tag="input_audio_buffer.append"):
    """Append audio of the user. A binary message does the same: its bytes are the samples.

    With turn detection, two seconds without audio in the middle of a turn count as two seconds of
    silence. So a turn ends, too, if the client sends nothing while its user is muted.
    """

    audio: AudioBytes
    """Whole samples, in the session's `audio.input.format`."""


class InputAudioCommit(ClientEventBase, frozen=True, tag="input_audio_buffer.commit"):
    """End the user's turn: the audio so far becomes a message. Answered by
    `input_audio_buffer.committed`, or by the error `input_audio_buffer_commit_empty` if there is
    less than 100 ms of audio, or, with turn detection, no speech since the last turn."""


class InputAudioClear(ClientEventBase, frozen=True, tag="input_audio_buffer.clear"):
    """Forget the audio that is not committed yet. Answered by `input_audio_buffer.cleared`."""


class ItemCreate(ClientEventBase, frozen=True, tag="conversation.item.create"):
    """Add an item. Answered by `conversation.item.added` and `conversation.item.done`."""

    item: Item
    """The item to add."""
    previous_item_id: ItemId | None = None
    """Id of the item after which the new one is inserted; `root` means the beginning, null the
    end."""


class ItemRetrieve(ClientEventBase, frozen=True, tag="conversation.item.retrieve"):
    """Request an item with its audio. Answered by `conversation.item.retrieved`."""

    item_id: ItemId
    """Id of the item."""


class ItemDelete(ClientEventBase, frozen=True, tag="conversation.item.delete"):
    """Remove an item from the conversation. Answered by `conversation.item.deleted`."""

    item_id: ItemId
    """Id of the item."""


class ItemTruncate(ClientEventBase, frozen=True, tag="conversation.item.truncate"):
    """Cut a message of the model off at the point up to which the user heard it.

    If the response of the message is still in progress, it is stopped. Answered by
    `conversation.item.truncated`. A point past the end of the audio counts as the end.
    """

    item_id: ItemId
    """Id of a message of the model."""
    content_index: Count
    """Index of the content part, which is 0."""
    audio_end_ms: Count
    """The point at which to cut, in milliseconds from the start of the part's audio."""


class ResponseCreate(ClientEventBase, frozen=True, tag="response.create"):
    """Request a response. Answered by `response.created` and the events after it.

    The response is in progress from then on. While it is, another response to the conversation is
    refused with `conversation_already_has_active_response`. Responses with `conversation: none` are
    not: they are created at once, each with its own input, and made beside each other and beside
    what is spoken. Only one with the server's own instructions and without functions waits until
    nothing else is in progress. After `response.cancel` the new response waits for the end of
    the cancelled one. If the last response called functions, first create an item with the output
    of each call: one response answers all of them.
    """

    response: ResponseChanges | None = None
    """Settings for this response. Absent settings have the session's values."""


class ResponseCancel(ClientEventBase, frozen=True, tag="response.cancel"):
    """Stop a response. Answered by `response.done`."""

    response_id: ItemId | None = None
    """Id of the response to stop; null means the one in progress."""


ClientEvent = (
    SessionUpdate
    | InputAudioAppend
    | InputAudioCommit
    | InputAudioClear
    | ItemCreate
    | ItemRetrieve
    | ItemDelete
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
    | Played
    | Resume
    | TokenReceived
    | UseLlmServer
    | OpenConversation
)
CLIENT_EVENTS: dict[str, Any] = {tag_of(kind): kind for kind in get_args(ClientEvent)}
"""The struct of each event that a client can send, by the event's type."""
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
        message = tidied(kind, message)
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
        raise missing(("type",))
    name = message["type"]
    if isinstance(name, str) and name in CLIENT_EVENTS:
        return CLIENT_EVENTS[name]
    if isinstance(name, str) and name in UNSUPPORTED:
        raise ProtocolError(
            f"{name} is not supported", UNSUPPORTED[name], code="unsupported_event", param="type"
        )
    near = nearest(name, CLIENT_EVENTS) if isinstance(name, str) else None
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
                raise mismatch(Literal[choices], tag_of(part), JSON, path)


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
