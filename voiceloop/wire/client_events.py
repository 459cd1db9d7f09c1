"""What a client says, and how it is read from a message.

Every message that is not one of these is a ProtocolError that says why and names the parameter;
nothing else is ever raised, whatever the bytes. This module does nothing about what is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, NoReturn, cast, get_args

from voiceloop.errors import ProtocolError
from voiceloop.schema import (
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
from voiceloop.wire.extensions import Played, Resume, UseLlmServer
from voiceloop.wire.items import PARTS, ClientEventBase, Item, ItemId, ItemReference, Message
from voiceloop.wire.jsontext import MAX_CHARACTERS, parse_object
from voiceloop.wire.settings import ResponseChanges, SessionChanges
from voiceloop.wire.sound import AudioBytes

MAX_BYTES = MAX_CHARACTERS // 4 * 3
"""Longest binary message: as much audio as a text message can hold."""


class SessionUpdate(ClientEventBase, frozen=True, tag="session.update"):
    """Change the session; only what is given changes. Answered by `session.updated`."""

    session: SessionChanges
    """What changes."""


class InputAudioAppend(ClientEventBase, frozen=True, tag="input_audio_buffer.append"):
    """Audio of the user. A binary message is the same: its bytes are the samples."""

    audio: AudioBytes
    """Whole samples, in the format of `audio.input`."""


class InputAudioCommit(ClientEventBase, frozen=True, tag="input_audio_buffer.commit"):
    """The audio so far is a turn. Answered by `input_audio_buffer.committed`; refused where the
    server finds the turns."""


class InputAudioClear(ClientEventBase, frozen=True, tag="input_audio_buffer.clear"):
    """Forget the audio that is not committed. Answered by `input_audio_buffer.cleared`."""


class ItemCreate(ClientEventBase, frozen=True, tag="conversation.item.create"):
    """Add an item. Answered by `conversation.item.added` and `conversation.item.done`."""

    item: Item
    """The item."""
    previous_item_id: ItemId | None = None
    """The item that it follows; `root` for the beginning, null for the end."""


class ItemRetrieve(ClientEventBase, frozen=True, tag="conversation.item.retrieve"):
    """Ask for an item with its audio. Answered by `conversation.item.retrieved`."""

    item_id: ItemId
    """The item."""


class ItemDelete(ClientEventBase, frozen=True, tag="conversation.item.delete"):
    """Remove an item. Answered by `conversation.item.deleted`."""

    item_id: ItemId
    """The item."""


class ItemTruncate(ClientEventBase, frozen=True, tag="conversation.item.truncate"):
    """The user has not heard a response beyond a point: forget the rest.

    A response that is in progress ends. Answered by `conversation.item.truncated`. A point past
    the end is no error; it is the end.
    """

    item_id: ItemId
    """A message of the model."""
    content_index: Count
    """The part of its content; 0."""
    audio_end_ms: Count
    """Where it was cut off, in milliseconds of the part's audio."""


class ResponseCreate(ClientEventBase, frozen=True, tag="response.create"):
    """Ask for a response. Answered by `response.created` and what follows it; behind a cancel,
    once that response has ended.

    Where the last response called functions, create an item with the output of each first: one
    response goes on with all of them.
    """

    response: ResponseChanges | None = None
    """What is to be other than the session's."""


class ResponseCancel(ClientEventBase, frozen=True, tag="response.cancel"):
    """Stop the response. Answered by `response.done`."""

    response_id: ItemId | None = None
    """The response, and no other; null is the one in progress."""


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
    | UseLlmServer
)
CLIENT_EVENTS: dict[str, Any] = {tag_of(kind): kind for kind in get_args(ClientEvent)}
"""Every event that a client can send, by type."""
UNSUPPORTED = {
    "output_audio_buffer.clear": "it is for WebRTC; send response.cancel, and drop what you hold",
    "transcription_session.update": "send session.update with a session of type `transcription`",
}
"""Events that the API has and voiceloop has not, with what to do instead."""


def _raised(error: ProtocolError) -> NoReturn:
    raise error


def parse(text: str, refuse: Callable[[ProtocolError], None] = _raised) -> ClientEvent:
    """The event in a text message.

    `refuse` is told of each setting in a `session.update` that cannot be had; what it returns from
    is left out, and the rest is the event. Raises ProtocolError, with the client's id of the event
    where one can be read.
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
                refuse(refused(_refusal(mistake)))
                message = _without(message, setting)
    except Mistake as mistake:
        raise refused(_refusal(mistake)) from None
    except ProtocolError as error:
        raise refused(error) from None


def _event(kind: Any, message: dict[str, Any]) -> ClientEvent:
    """Raises Mistake."""
    event = read(kind, message, JSON)
    if isinstance(event, ItemCreate):
        _check_parts(event.item, ("item",))
    if isinstance(event, ResponseCreate) and event.response and event.response.input:
        for index, item in enumerate(event.response.input):
            _check_parts(item, ("response", "input", index))
    return event


def _setting(message: dict[str, Any], path: Path) -> Path:
    """The innermost key on `path` that is there, within no list: half a list is no setting."""
    keys, value = list[str | int](), cast("object", message)
    for step in path:
        if not isinstance(value, dict) or step not in value:
            break
        keys.append(step)
        value = cast("dict[str | int, object]", value)[step]
    return tuple(keys)


def _without(value: dict[str, Any], path: Path) -> dict[str, Any]:
    """`value` without the key that `path` leads to."""
    key, *rest = path
    if not rest:
        return {name: entry for name, entry in value.items() if name != key}
    return {**value, str(key): _without(value[str(key)], tuple(rest))}


def parse_binary(data: bytes) -> InputAudioAppend:
    """The event in a binary message. Raises ProtocolError."""
    if len(data) > MAX_BYTES:
        raise ProtocolError(
            f"the message has {len(data)} bytes, and {MAX_BYTES} are the most",
            "send long audio in pieces",
        )
    return InputAudioAppend(AudioBytes(data))


def _kind(message: dict[str, Any]) -> Any:
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
    """Raises Mistake for a part that is not one of the message's role."""
    if isinstance(item, Message):
        choices = tuple(map(tag_of, PARTS[item.role]))
        for index, part in enumerate(item.content):
            if tag_of(part) not in choices:
                path = (*at, "content", index, "type")
                raise mismatch(Literal[choices], tag_of(part), JSON, path)


def _refusal(mistake: Mistake) -> ProtocolError:
    """What the client is told; the parameter is named in the API's manner, `item.content[0]`."""
    param = _named(mistake.path)
    code = mistake.code
    hint = "docs/protocol.md lists what each event takes"
    return ProtocolError(f"{param} {mistake}", mistake.hint or hint, code=code, param=param)


def _named(path: Path) -> str:
    name = ""
    for step in path:
        if isinstance(step, int):
            name += f"[{step}]"
        else:
            # The key may be the peer's: errors are one short line, whatever it holds.
            key = step if step.isprintable() else json.dumps(step)[1:-1]
            key = key if len(key) <= LONGEST_NAME else f"{key[: LONGEST_NAME - 3]}..."
            name += f".{key}" if name else key
    return name
