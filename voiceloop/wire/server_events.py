"""The events that the server can send, and their encoding as JSON. The order of those of a response
is documented in `responses.py`.

Events whose types begin with `voiceloop` are voiceloop's own: the server sends them only to a
client that turned them on in `settings.Extensions`, or as the answer to an event of that kind.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from voiceloop.errors import ProtocolError
from voiceloop.settings.schema import LOCAL, Object, hints_of
from voiceloop.wire.items import LENGTH, Item, plain
from voiceloop.wire.settings import (
    Modalities,
    OutputTokens,
    ResponseAudio,
    SessionSettings,
    TranscriptionSession,
)

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""Encoder of all events. `json.dumps` would make a new encoder for each event."""


class ServerEvent(Object, frozen=True):
    """An event that the server sends.

    It has no id before it is encoded. So events with the same content are equal.
    """

    def to_json(self, event_id: str) -> str:
        """Encode the event as JSON, with `event_id`.

        Raises ValueError for NaN and infinite numbers: they would break the client's parser.
        """
        fields = plain(self)
        for name in _local(type(self)):
            del fields[name]
        fields["event_id"] = event_id
        return _ENCODER.encode(fields)


@cache
def _local(kind: type[ServerEvent]) -> list[str]:
    """Return the names of the fields of an event that are not sent."""
    return [name for name in kind.__struct_fields__ if name not in hints_of(kind)]


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


FRAME_HEADER = struct.Struct(f"<{LENGTH}sI")
"""Header of a binary message: the item's id in ASCII, and the index of the first sample."""


class StatusError(Object, frozen=True):
    """The reason why a response failed or is incomplete."""

    type: str
    """Kind of error."""
    code: str | None = None
    """More exact kind of error."""
    message: str | None = None
    """What happened."""


class StatusDetails(Object, frozen=True):
    """The reason why a response was not completed."""

    type: Literal["cancelled", "failed", "incomplete"]
    """The same value as the response's `status`."""
    reason: (
        Literal["turn_detected", "client_cancelled", "max_output_tokens", "content_filter"] | None
    ) = None
    """Why it was cancelled or is incomplete: the user spoke, the client cancelled it, it reached
    its token limit, or a filter of the language model's server cut it off. Null if the connection
    ended, or if `error` has the reason."""
    error: StatusError | None = None
    """The reason why the response failed; null if it did not. With the code `nothing_said` the
    response did not fail, and `type` is `incomplete`. Then the model wrote no words, and a sentence
    that says so is spoken instead."""


class CachedTokens(Object, frozen=True):
    """Tokens of the prompt that were in the model's cache."""

    text_tokens: int
    """Always 0: the tokens of the prompt are not counted."""
    audio_tokens: Literal[0] = 0
    """Always 0: the language model reads text only."""
    image_tokens: Literal[0] = 0
    """Always 0: the language model reads text only."""


class InputTokens(Object, frozen=True):
    """The tokens of the prompt, by kind."""

    text_tokens: int
    """Always 0: the tokens of the prompt are not counted."""
    cached_tokens: int
    """Always 0: the tokens of the prompt are not counted."""
    cached_tokens_details: CachedTokens
    """The cached tokens, by kind."""
    audio_tokens: Literal[0] = 0
    """Always 0: the language model reads text only."""
    image_tokens: Literal[0] = 0
    """Always 0: the language model reads text only."""


class OutputTokensUsed(Object, frozen=True):
    """The tokens of a response, by kind."""

    text_tokens: int
    """Number of tokens in the response; all are text."""
    audio_tokens: Literal[0] = 0
    """Always 0: speech is synthesised from the text."""


class Usage(Object, frozen=True):
    """The token counts of a response."""

    total_tokens: int
    """Number of tokens in the response, since those of the prompt are not counted."""
    input_tokens: int
    """Always 0: the tokens of the prompt are not counted."""
    output_tokens: int
    """Number of tokens in the response."""
    input_token_details: InputTokens
    """The tokens of the prompt, by kind."""
    output_token_details: OutputTokensUsed
    """The tokens of the response, by kind."""

    @staticmethod
    def of(prompt: int, cached: int, output: int) -> Usage:
        """Return the counts of a response. Its prompt had `prompt` tokens, and `cached` of these
        were in the model's cache. The response had `output` tokens."""
        return Usage(
            total_tokens=prompt + output,
            input_tokens=prompt,
            output_tokens=output,
            input_token_details=InputTokens(prompt, cached, CachedTokens(cached)),
            output_token_details=OutputTokensUsed(output),
        )


class ResponseObject(Object, frozen=True, tag_field="object", tag="realtime.response"):
    """A response, as events report it."""

    id: str
    """Id of the response."""
    status: Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]
    """`in_progress`, or how the response ended."""
    status_details: StatusDetails | None
    """Details of the end. Null while the response is in progress, and if it was completed."""
    output: tuple[Item, ...]
    """Items of the response: at most one message, and any calls. Empty in `response.created`."""
    conversation_id: str | None
    """Id of the conversation to which the response belongs; null if it belongs to none."""
    output_modalities: Modalities
    """The modality that was requested."""
    audio: ResponseAudio
    """The voice and format that were requested."""
    max_output_tokens: OutputTokens
    """The requested maximum number of tokens."""
    usage: Usage | None
    """Numbers of tokens; null in `response.created`."""
    metadata: Mapping[str, str] | None
    """The metadata that the client gave for the response; null if it gave none."""


class AudioPart(Object, frozen=True, tag="audio"):
    """A spoken part of a message."""

    transcript: str
    """Transcript of the audio."""


class TextPart(Object, frozen=True, tag="text"):
    """A written part of a message."""

    text: str
    """The text."""


class _OfItem(ServerEvent, frozen=True):
    response_id: str
    """Id of the response."""
    item_id: str
    """Id of the item."""
    output_index: int
    """Index of the item in the response, from 0."""


class _OfPart(_OfItem, frozen=True):
    content_index: int
    """Index of the part in the item, which is 0."""


class ResponseCreated(ServerEvent, frozen=True, tag="response.created"):
    """A response begins."""

    response: ResponseObject
    """The response."""


class OutputItemAdded(ServerEvent, frozen=True, tag="response.output_item.added"):
    """An item of a response begins."""

    response_id: str
    """Id of the response."""
    output_index: int
    """Index of the item in the response, from 0."""
    item: Item
    """The item, still without content."""


class ContentPartAdded(_OfPart, frozen=True, tag="response.content_part.added"):
    """A part of a message begins."""

    part: AudioPart | TextPart
    """The part, still empty."""


class OutputAudioDelta(_OfPart, frozen=True, tag="response.output_audio.delta"):
    """More audio of a part. A session with `binary_audio` gets a binary message instead."""

    delta: bytes
    """Whole samples, in the format that `response.created` gives."""
    start: Annotated[int, LOCAL]
    """Index of the first sample within the item, at the sample rate of the format."""
    length: Annotated[int, LOCAL]
    """Duration of `delta`, as a number of samples at 24 kHz (`sound.RATE`)."""

    def to_frame(self) -> bytes:
        """Return the binary message: `FRAME_HEADER`, then the samples."""
        return FRAME_HEADER.pack(self.item_id.encode("ascii"), self.start) + self.delta


class OutputTranscriptDelta(_OfPart, frozen=True, tag="response.output_audio_transcript.delta"):
    """More of a part's transcript, sent no later than the audio."""

    delta: str
    """Text to append to the transcript."""


class OutputTextDelta(_OfPart, frozen=True, tag="response.output_text.delta"):
    """More text of a written part."""

    delta: str
    """Text to append to the part."""


class ArgumentsDelta(_OfItem, frozen=True, tag="response.function_call_arguments.delta"):
    """More of the arguments of a function call."""

    call_id: str
    """Id of the call."""
    delta: str
    """Text to append to the arguments."""


class OutputAudioDone(_OfPart, frozen=True, tag="response.output_audio.done"):
    """The audio of a part has ended."""


class OutputTranscriptDone(_OfPart, frozen=True, tag="response.output_audio_transcript.done"):
    """The transcript of a part has ended. After an interruption it has only what was heard."""

    transcript: str
    """The whole transcript. If it differs from the texts of the deltas, use it instead of them."""


class OutputTextDone(_OfPart, frozen=True, tag="response.output_text.done"):
    """The text of a written part has ended."""

    text: str
    """The whole text."""


class ArgumentsDone(_OfItem, frozen=True, tag="response.function_call_arguments.done"):
    """The arguments of a call have ended. Run the call once `response.done` has come with the
    status `completed`."""

    call_id: str
    """Id of the call."""
    name: str
    """Name of the function."""
    arguments: str
    """All arguments, as the text of a JSON object."""


class ContentPartDone(_OfPart, frozen=True, tag="response.content_part.done"):
    """A part of a message has ended."""

    part: AudioPart | TextPart
    """The part, without audio."""


class OutputItemDone(ServerEvent, frozen=True, tag="response.output_item.done"):
    """An item of a response has ended, complete or not."""

    response_id: str
    """Id of the response."""
    output_index: int
    """Index of the item in the response, from 0."""
    item: Item
    """The item, without audio."""


class ResponseDone(ServerEvent, frozen=True, tag="response.done"):
    """A response has ended, whatever its status."""

    response: ResponseObject
    """The response, without audio."""


# voiceloop's own ----------------------------------------------------------------------------------


class LlmServerUsed(ServerEvent, frozen=True, tag="voiceloop.llm_server.used"):
    """Another language model generates the replies in every session that begins or is resumed from
    now on. To use it at once, a client connects again and sends `voiceloop.resume`."""

    name: str
    """Name of its server for people, such as `Ollama`; empty for voiceloop's own language model."""
    model: str
    """Name of the model that generates the replies."""
    kept: str | None
    """The settings file that keeps this choice for the next start; null if it could not be
    written."""


class TentativeTranscript(ServerEvent, frozen=True, tag="voiceloop.transcript"):
    """The transcript of the user's turn so far. It replaces the turn's earlier transcripts."""

    item_id: str
    """Id of the message that the turn becomes."""
    committed: str
    """Words that will not change any more."""
    tentative: str
    """Words after `committed` that may still change."""


class TraceSent(ServerEvent, frozen=True, tag="voiceloop.trace"):
    """The record of a turn that is over."""

    response_id: str | None
    """Id of the response; null if there was none."""
    item_id: str | None
    """Id of the user's message; null if there was none."""
    trace: Mapping[str, object]
    """`voice_to_voice_ms`, its `parts`, and the other figures that docs/latency.md explains.
    `speech_end_ms` is the position in the input audio at which the user's voice ended. With it a
    client can measure the time to the first sound by its own clock."""


class OutputPaused(ServerEvent, frozen=True, tag="voiceloop.output.paused"):
    """The user may be interrupting: pause the audio of an item at once, and keep the rest of it."""

    item_id: str
    """Id of the message that is being played."""


class OutputResumed(ServerEvent, frozen=True, tag="voiceloop.output.resumed"):
    """The user did not interrupt: continue the audio after the last sample that was played."""

    item_id: str
    """Id of the message that was paused."""


class OutputClause(ServerEvent, frozen=True, tag="voiceloop.output.clause"):
    """The position of a clause in the audio of a response. If the connection is lost midway, a
    client can tell from these positions what was heard."""

    item_id: str
    """Id of the message."""
    audio_ms: float
    """Start of the clause in the message's audio, in milliseconds, with fractions."""
    text: str
    """Text of the clause. All clauses together are the text of the message."""


class SessionToken(ServerEvent, frozen=True, tag="voiceloop.session.token"):
    """A token with which the session can be resumed after its connection is lost."""

    token: str
    """The token for `voiceloop.resume`; a newer one makes it invalid."""
    expires_in_s: float
    """Seconds for which the session is kept after its connection is lost."""


class SessionResumed(ServerEvent, frozen=True, tag="voiceloop.session.resumed"):
    """The session continues. `conversation.item.added` and `.done` follow for each of its items."""
