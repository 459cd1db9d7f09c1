"""What the server says of the session, of the conversation and of the user's audio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from voiceloop.errors import ProtocolError
from voiceloop.realtime.event import Event
from voiceloop.realtime.items import Item
from voiceloop.realtime.settings import SessionSettings


@dataclass(frozen=True, slots=True)
class ErrorDetails:
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


@dataclass(frozen=True, slots=True)
class Error(Event):
    """Something was refused or went wrong; the session goes on."""

    tags: ClassVar = {"type": "error"}

    error: ErrorDetails
    """What was wrong."""

    @staticmethod
    def of(error: ProtocolError, event_id: str | None = None) -> Error:
        """`error` as told to the client, whose event had the id `event_id`."""
        message = f"{error.message}; {error.hint}" if error.hint else error.message
        told = error.event_id or event_id
        return Error(ErrorDetails("invalid_request_error", message, error.code, error.param, told))


@dataclass(frozen=True, slots=True)
class SessionCreated(Event):
    """The first event of a connection."""

    tags: ClassVar = {"type": "session.created"}

    session: SessionSettings
    """The session as it is."""


@dataclass(frozen=True, slots=True)
class SessionUpdated(Event):
    """The session has changed."""

    tags: ClassVar = {"type": "session.updated"}

    session: SessionSettings
    """The session as it is now."""


# The conversation ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ItemAdded(Event):
    """An item is in the conversation, perhaps without its content yet."""

    tags: ClassVar = {"type": "conversation.item.added"}

    previous_item_id: str | None
    """The item that it follows; null at the beginning."""
    item: Item
    """The item, without audio."""


@dataclass(frozen=True, slots=True)
class ItemDone(Event):
    """An item is whole."""

    tags: ClassVar = {"type": "conversation.item.done"}

    previous_item_id: str | None
    """The item that it follows; null at the beginning."""
    item: Item
    """The item, without audio."""


@dataclass(frozen=True, slots=True)
class ItemRetrieved(Event):
    """An item that was asked for."""

    tags: ClassVar = {"type": "conversation.item.retrieved"}

    item: Item
    """The item, with the user's audio where it is still there."""


@dataclass(frozen=True, slots=True)
class ItemDeleted(Event):
    """An item has left: the client deleted it, or it was the oldest of too many."""

    tags: ClassVar = {"type": "conversation.item.deleted"}

    item_id: str
    """The item."""


@dataclass(frozen=True, slots=True)
class ItemTruncated(Event):
    """A message of the model has been cut off at what was heard."""

    tags: ClassVar = {"type": "conversation.item.truncated"}

    item_id: str
    """The message."""
    content_index: int
    """The part of its content."""
    audio_end_ms: int
    """Where it ends now, in milliseconds of the part's audio."""


@dataclass(frozen=True, slots=True)
class TranscriptionDelta(Event):
    """More of what the user says; it is not taken back."""

    tags: ClassVar = {"type": "conversation.item.input_audio_transcription.delta"}

    item_id: str
    """The user's message."""
    content_index: int
    """The part of its content; 0."""
    delta: str
    """What follows the text so far."""


@dataclass(frozen=True, slots=True)
class TranscriptionUsage:
    """What a transcription took."""

    tags: ClassVar = {"type": "duration"}

    seconds: float
    """Length of the audio, in seconds."""


@dataclass(frozen=True, slots=True)
class TranscriptionCompleted(Event):
    """What the user said."""

    tags: ClassVar = {"type": "conversation.item.input_audio_transcription.completed"}

    item_id: str
    """The user's message."""
    content_index: int
    """The part of its content; 0."""
    transcript: str
    """All of it; where it differs from the deltas, this is right."""
    usage: TranscriptionUsage
    """What it took."""


@dataclass(frozen=True, slots=True)
class TranscriptionError:
    """Why there is no transcript."""

    type: str
    """What kind of error."""
    message: str
    """What happened."""
    code: str | None = None
    """What kind of error, more exactly."""
    param: None = None
    """Always null."""


@dataclass(frozen=True, slots=True)
class TranscriptionFailed(Event):
    """What the user said could not be recognised."""

    tags: ClassVar = {"type": "conversation.item.input_audio_transcription.failed"}

    item_id: str
    """The user's message."""
    content_index: int
    """The part of its content; 0."""
    error: TranscriptionError
    """Why."""


# The user's audio ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputSpeechStarted(Event):
    """The user speaks. Stop playing, unless the session asked for `pause`."""

    tags: ClassVar = {"type": "input_audio_buffer.speech_started"}

    item_id: str
    """The message that this becomes."""
    audio_start_ms: int
    """Where the turn begins, in milliseconds of all audio appended."""


@dataclass(frozen=True, slots=True)
class InputSpeechStopped(Event):
    """The user's turn is over."""

    tags: ClassVar = {"type": "input_audio_buffer.speech_stopped"}

    item_id: str
    """The message that this becomes."""
    audio_end_ms: int
    """Where the turn ends, in milliseconds of all audio appended."""


@dataclass(frozen=True, slots=True)
class InputCommitted(Event):
    """The audio of a turn has become a message."""

    tags: ClassVar = {"type": "input_audio_buffer.committed"}

    item_id: str
    """The message."""
    previous_item_id: str | None
    """The item that it follows; null at the beginning."""


@dataclass(frozen=True, slots=True)
class InputCleared(Event):
    """The audio that was not committed is forgotten."""

    tags: ClassVar = {"type": "input_audio_buffer.cleared"}


@dataclass(frozen=True, slots=True)
class InputTimeout(Event):
    """The user has said nothing for `idle_timeout_ms`: the model speaks."""

    tags: ClassVar = {"type": "input_audio_buffer.timeout_triggered"}

    item_id: str
    """The message that the silence becomes."""
    audio_start_ms: int
    """Where the silence begins, in milliseconds of all audio appended."""
    audio_end_ms: int
    """Where it ends, likewise."""
