"""What the server says of the session, of the conversation and of the user's audio."""

from __future__ import annotations

from typing import Literal

from voiceloop.errors import ProtocolError
from voiceloop.schema import Object
from voiceloop.wire.items import Item
from voiceloop.wire.server_events import ServerEvent
from voiceloop.wire.settings import SessionSettings, TranscriptionSession


class ErrorDetails(Object, frozen=True):
    """What was wrong."""

    type: Literal["invalid_request_error", "server_error"]
    """Whose fault: the client's or the server's."""
    message: str
    """What happened, and what to do about it."""
    code: str | None = None
    """What kind of mistake, as the API calls it."""
    param: str | None = None
    """The parameter at fault, such as `session.audio.output.speed`."""
    event_id: str | None = None
    """The client's id of its event, if it gave one."""


class Error(ServerEvent, frozen=True, tag="error"):
    """Something was refused or went wrong; the session goes on."""

    error: ErrorDetails
    """What was wrong."""

    @staticmethod
    def of(error: ProtocolError, event_id: str | None = None) -> Error:
        """`error` as told to the client, whose event had the id `event_id`."""
        message = f"{error.message}; {error.hint}" if error.hint else error.message
        told = error.event_id or event_id
        return Error(ErrorDetails("invalid_request_error", message, error.code, error.param, told))


class SessionCreated(ServerEvent, frozen=True, tag="session.created"):
    """The first event of a connection."""

    session: SessionSettings | TranscriptionSession
    """The session as it is."""


class SessionUpdated(ServerEvent, frozen=True, tag="session.updated"):
    """The session has changed."""

    session: SessionSettings | TranscriptionSession
    """The session as it is now."""


# The conversation ---------------------------------------------------------------------------------


class ItemAdded(ServerEvent, frozen=True, tag="conversation.item.added"):
    """An item is in the conversation, perhaps without its content yet."""

    previous_item_id: str | None
    """The item that it follows; null at the beginning."""
    item: Item
    """The item, without audio."""


class ItemDone(ServerEvent, frozen=True, tag="conversation.item.done"):
    """An item is whole."""

    previous_item_id: str | None
    """The item that it follows; null at the beginning."""
    item: Item
    """The item, without audio."""


class ItemRetrieved(ServerEvent, frozen=True, tag="conversation.item.retrieved"):
    """An item that was asked for."""

    item: Item
    """The item, with the user's audio where it is still there."""


class ItemDeleted(ServerEvent, frozen=True, tag="conversation.item.deleted"):
    """An item has left: the client deleted it, or it was the oldest of too many."""

    item_id: str
    """The item."""


class ItemTruncated(ServerEvent, frozen=True, tag="conversation.item.truncated"):
    """A message of the model has been cut off at what was heard."""

    item_id: str
    """The message."""
    content_index: int
    """The part of its content."""
    audio_end_ms: int
    """Where it ends now, in milliseconds of the part's audio."""


class TranscriptionDelta(
    ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.delta"
):
    """More of what the user says; it is not taken back."""

    item_id: str
    """The user's message."""
    content_index: int
    """The part of its content; 0."""
    delta: str
    """What follows the text so far."""


class TranscriptionUsage(Object, frozen=True, tag="duration"):
    """What a transcription took."""

    seconds: float
    """Length of the audio, in seconds."""


class TranscriptionCompleted(
    ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.completed"
):
    """What the user said."""

    item_id: str
    """The user's message."""
    content_index: int
    """The part of its content; 0."""
    transcript: str
    """All of it; where it differs from the deltas, this is right."""
    usage: TranscriptionUsage
    """What it took."""


class TranscriptionError(Object, frozen=True):
    """Why there is no transcript."""

    type: str
    """What kind of error."""
    message: str
    """What happened."""
    code: str | None = None
    """What kind of error, more exactly."""
    param: None = None
    """Always null."""


class TranscriptionFailed(
    ServerEvent, frozen=True, tag="conversation.item.input_audio_transcription.failed"
):
    """What the user said could not be recognised."""

    item_id: str
    """The user's message."""
    content_index: int
    """The part of its content; 0."""
    error: TranscriptionError
    """Why."""


# The user's audio ---------------------------------------------------------------------------------


class InputSpeechStarted(ServerEvent, frozen=True, tag="input_audio_buffer.speech_started"):
    """The user speaks. Stop playing, unless the session asked for `pause`."""

    item_id: str
    """The message that this becomes."""
    audio_start_ms: int
    """Where the turn begins, in milliseconds of all audio appended."""


class InputSpeechStopped(ServerEvent, frozen=True, tag="input_audio_buffer.speech_stopped"):
    """The user's turn is over."""

    item_id: str
    """The message that this becomes."""
    audio_end_ms: int
    """Where the turn ends, in milliseconds of all audio appended."""


class InputCommitted(ServerEvent, frozen=True, tag="input_audio_buffer.committed"):
    """The audio of a turn has become a message."""

    item_id: str
    """The message."""
    previous_item_id: str | None
    """The item that it follows; null at the beginning."""


class InputCleared(ServerEvent, frozen=True, tag="input_audio_buffer.cleared"):
    """The audio that was not committed is forgotten."""


class InputTimeout(ServerEvent, frozen=True, tag="input_audio_buffer.timeout_triggered"):
    """The user has said nothing for `idle_timeout_ms`: the model speaks."""

    item_id: str
    """The message that the silence becomes."""
    audio_start_ms: int
    """Where the silence begins, in milliseconds of all audio appended."""
    audio_end_ms: int
    """Where it ends, likewise."""
