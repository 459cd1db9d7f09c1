"""What a client says: frozen dataclasses, and how they are read from a message.

Every message that is not one of these is a ProtocolError that says why and names the parameter;
nothing else is ever raised, whatever the bytes. This module does nothing about what is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from voiceloop.config import Count, nearest
from voiceloop.errors import ProtocolError
from voiceloop.realtime.extensions import Played, Resume
from voiceloop.realtime.items import EventId, Item, ItemId
from voiceloop.realtime.jsontext import MAX_CHARACTERS, parse_object, shown
from voiceloop.realtime.reading import missing, read, whole_samples
from voiceloop.realtime.schema import Patch
from voiceloop.realtime.settings import ResponseSettings, SessionSettings

MAX_BYTES = MAX_CHARACTERS // 4 * 3
"""Longest binary message: as much audio as a text message can hold."""


@dataclass(frozen=True, slots=True)
class SessionUpdate:
    """Change the session; only what is given changes. Answered by `session.updated`."""

    tags: ClassVar = {"type": "session.update"}

    session: Patch[SessionSettings]
    """What changes."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class InputAudioAppend:
    """Audio of the user. A binary message is the same: its bytes are the samples."""

    tags: ClassVar = {"type": "input_audio_buffer.append"}

    audio: bytes
    """PCM16, little-endian, mono, 24 kHz; whole samples."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class InputAudioCommit:
    """The audio so far is a turn. Answered by `input_audio_buffer.committed`; refused where the
    server finds the turns."""

    tags: ClassVar = {"type": "input_audio_buffer.commit"}

    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class InputAudioClear:
    """Forget the audio that is not committed. Answered by `input_audio_buffer.cleared`."""

    tags: ClassVar = {"type": "input_audio_buffer.clear"}

    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class ItemCreate:
    """Add an item. Answered by `conversation.item.added` and `conversation.item.done`."""

    tags: ClassVar = {"type": "conversation.item.create"}

    item: Item
    """The item."""
    previous_item_id: ItemId | None = None
    """The item that it follows; `root` for the beginning, null for the end."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class ItemRetrieve:
    """Ask for an item with its audio. Answered by `conversation.item.retrieved`."""

    tags: ClassVar = {"type": "conversation.item.retrieve"}

    item_id: ItemId
    """The item."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class ItemDelete:
    """Remove an item. Answered by `conversation.item.deleted`."""

    tags: ClassVar = {"type": "conversation.item.delete"}

    item_id: ItemId
    """The item."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class ItemTruncate:
    """The user has not heard a response beyond a point: forget the rest.

    Answered by `conversation.item.truncated`. A point past the end is no error; it is the end.
    """

    tags: ClassVar = {"type": "conversation.item.truncate"}

    item_id: ItemId
    """A message of the model."""
    content_index: Count
    """The part of its content; 0."""
    audio_end_ms: Count
    """Where it was cut off, in milliseconds of the part's audio."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class ResponseCreate:
    """Ask for a response. Answered by `response.created` and what follows it.

    Where the last response called functions, create an item with the output of each first: one
    response goes on with all of them.
    """

    tags: ClassVar = {"type": "response.create"}

    response: Patch[ResponseSettings] | None = None
    """What is to be other than the session's."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


@dataclass(frozen=True, slots=True)
class ResponseCancel:
    """Stop the response. Answered by `response.done`."""

    tags: ClassVar = {"type": "response.cancel"}

    response_id: ItemId | None = None
    """The response; null is the one in progress."""
    event_id: EventId = None
    """The client's own id, told again in errors."""


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
)
CLIENT_EVENTS: dict[str, Any] = {kind.tags["type"]: kind for kind in get_args(ClientEvent)}
"""Every event that a client can send, by type."""
UNSUPPORTED = {
    "output_audio_buffer.clear": "it is for WebRTC; send response.cancel, and drop what you hold",
    "transcription_session.update": "send session.update: sessions are of type `realtime` here",
}
"""Events that the API has and voiceloop has not, with what to do instead."""


def parse(text: str) -> ClientEvent:
    """The event in a text message.

    Raises ProtocolError, with the client's id of the event where one can be read.
    """
    message = parse_object(text)
    event_id = message.get("event_id")
    try:
        return read(_kind(message), message, "")
    except ProtocolError as error:
        error.event_id = event_id if isinstance(event_id, str) and len(event_id) <= 512 else None
        raise


def parse_binary(data: bytes) -> InputAudioAppend:
    """The event in a binary message. Raises ProtocolError."""
    if len(data) > MAX_BYTES:
        raise ProtocolError(
            f"the message has {len(data)} bytes, and {MAX_BYTES} are the most",
            "send long audio in pieces",
        )
    return InputAudioAppend(whole_samples(data, "the message"))


def _kind(message: dict[str, Any]) -> Any:
    if "type" not in message:
        raise missing("type")
    name = message["type"]
    if isinstance(name, str) and name in CLIENT_EVENTS:
        return CLIENT_EVENTS[name]
    if isinstance(name, str) and name in UNSUPPORTED:
        raise ProtocolError(
            f"{name} is not supported", UNSUPPORTED[name], code="unsupported_event", param="type"
        )
    near = nearest(name, CLIENT_EVENTS) if isinstance(name, str) and len(name) <= 64 else None
    raise ProtocolError(
        f"type must be that of an event, not {shown(name)}",
        f"did you mean '{near}'?" if near else "docs/protocol.md lists all events",
        param="type",
    )
