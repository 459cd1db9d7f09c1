"""Events from the server about the session, the conversation and the user's audio."""

from __future__ import annotations

from typing import Literal

from voiceloop.errors import ProtocolError
from voiceloop.schema import Object
from voiceloop.wire.items import Item
from voiceloop.wire.server_events import ServerEvent
from voiceloop.wire.settings import SessionSettings, TranscriptionSession


class ErrorDetails(Object, frozen=True):
    """The details of an error."""

    type: Literal["invalid_request_error", "server_error"]
    """Who is at fault: the client, or the server."""
    message: str
    """What happened, and what to do about it."""
    code: str | None = None
    """Kind of error, by its name in the API; null for an error of the server."""
    param: str | None = None
    """The parameter at fault, such as `session.audio.output.speed`; null if there is none."""
    event_id: str | None = None
    """Id that the client gave to the event at fault; null if it gave none."""


class Error(ServerEvent, frozen=True, tag="error"):
    """Something was refused or went wrong. Unless the connection is closed, the session
    continues."""

    error: ErrorDetails
    """The details of the error."""

    @staticmethod
    def of(error: ProtocolError, event_id: str | None = None) -> Error:
        """Return the event for `error`. `event_id` is the id of the client's event; it is used if
        `error` has none."""
        message = f"{error.message}; {error.hint}" if error.hint else error.message
        client_id = event_id if error.event_id is None else error.event_id
        return Error(
            ErrorDetails("invalid_request_error", message, error.code, error.param, client_id)
        )


class SessionCreated(ServerEvent, frozen=True, tag="session.created"):
    """The first event of a connection."""

    session: SessionSettings | TranscriptionSession
    """The session's settings."""


class SessionUpdated(ServerEvent, frozen=True, tag="session.updated"):
    """The settings of the session have changed."""

    session: SessionSettings | TranscriptionSession
    """The session's settings from now on."""


# The conversation ---------------------------------------------------------------------------------


class ItemAdded(ServerEvent, frozen=True, tag="conversation.item.added"):
    """An item was added to the conversation, perhaps still without its content."""

    previous_item_id: str | None
    """Id of the item before this item; null if this is the first."""
    item: Item
    """The item, without audio."""


class ItemDone(ServerEvent, frozen=True, tag="conversation.item.done"):
    """An item is no longer in progress."""

    previous_item_id: str | None
    """Id of the item before this item; null if this is the first."""
    item: Item
    """The item, without audio."""


class ItemRetrieved(ServerEvent, frozen=True, tag="conversation.item.retrieved"):
    """An item that the client requested."""

    item: Item
    """The item, with the user's audio if the server still has it."""


class ItemDeleted(ServerEvent, frozen=True, tag="conversation.item.deleted"):
    """An item was removed: by the client, or because it was the oldest of a full conversation."""

    item_id: str
    """Id of the item."""


class ItemTruncated(ServerEvent, frozen=True, tag="conversation.item.truncated"):
    """A message of the model was cut off at the point up to which it was heard."""

    item_id: str
    """Id of the message."""
    content_index: int
    """Index of the content part."""
    audio_end_ms: int
    """The new end, in milliseconds of the part's audio."""


class TranscriptionDelta(
    ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.delta"
):
    """More of the transcript of the user's words. Words that were sent do not change any more."""

    item_id: str
    """Id of the user's message."""
    content_index: int
    """Index of the content part, which is 0."""
    delta: str
    """Text to append to the transcript."""


class TranscriptionUsage(Object, frozen=True, tag="duration"):
    """The usage of a transcription, by duration."""

    seconds: float
    """Length of the audio, in seconds."""


class TranscriptionCompleted(
    ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.completed"
):
    """The final transcript of what the user said."""

    item_id: str
    """Id of the user's message."""
    content_index: int
    """Index of the content part, which is 0."""
    transcript: str
    """The whole transcript: the text of all deltas."""
    usage: TranscriptionUsage
    """Length of the audio that was transcribed."""


class TranscriptionError(Object, frozen=True):
    """The reason why there is no transcript."""

    type: str
    """Kind of error."""
    message: str
    """What happened."""
    code: str | None = None
    """More exact kind of error."""
    param: None = None
    """Always null."""


class TranscriptionFailed(
    ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.failed"
):
    """What the user said could not be recognised."""

    item_id: str
    """Id of the user's message."""
    content_index: int
    """Index of the content part, which is 0."""
    error: TranscriptionError
    """The reason why there is no transcript."""


# The user's audio ---------------------------------------------------------------------------------


class InputSpeechStarted(ServerEvent, frozen=True, tag="input_audio_buffer.speech_started"):
    """The user has begun to speak. The client should stop playing, unless the session has
    `voiceloop.pause`."""

    item_id: str
    """Id of the message that the turn becomes."""
    audio_start_ms: int
    """Point in all appended audio at which the turn starts, in milliseconds."""


class InputSpeechStopped(ServerEvent, frozen=True, tag="input_audio_buffer.speech_stopped"):
    """The user's turn is over."""

    item_id: str
    """Id of the message that the turn becomes."""
    audio_end_ms: int
    """Point in all appended audio at which the turn ends, in milliseconds."""


class InputCommitted(ServerEvent, frozen=True, tag="input_audio_buffer.committed"):
    """The audio of a turn has become a message."""

    item_id: str
    """Id of the message."""
    previous_item_id: str | None
    """Id of the item before this item; null if this is the first."""


class InputCleared(ServerEvent, frozen=True, tag="input_audio_buffer.cleared"):
    """The audio that was not committed has been forgotten."""


class InputTimeout(ServerEvent, frozen=True, tag="input_audio_buffer.timeout_triggered"):
    """The user has said nothing for `idle_timeout_ms`, so the model speaks again."""

    item_id: str
    """Id of the message that the silence becomes."""
    audio_start_ms: int
    """Point in all appended audio at which the silence starts, in milliseconds."""
    audio_end_ms: int
    """Point in all appended audio at which the silence ends, in milliseconds."""
