"""What the server says of a response. The order of these events is that of `responses.py`."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Annotated, Literal

from voiceloop.schema import LOCAL, Object
from voiceloop.wire.ids import LENGTH
from voiceloop.wire.items import Item
from voiceloop.wire.server_events import ServerEvent
from voiceloop.wire.settings import Modalities, OutputTokens, ResponseAudio

FRAME_HEADER = struct.Struct(f"<{LENGTH}sI")
"""Header of binary audio: the item's id in ASCII, and the index of the first sample."""


class StatusError(Object, frozen=True):
    """Why a response failed, or what it lacks."""

    type: str
    """What kind of error."""
    code: str | None = None
    """What kind of error, more exactly."""
    message: str | None = None
    """What happened."""


class StatusDetails(Object, frozen=True):
    """How a response that was not completed ended."""

    type: Literal["cancelled", "failed", "incomplete"]
    """The status again."""
    reason: Literal["turn_detected", "client_cancelled", "max_output_tokens"] | None = None
    """Why it was cancelled or is incomplete: the user spoke, the client asked, it was too long;
    null where the connection ended."""
    error: StatusError | None = None
    """Why it failed; with code `nothing_said` why it is incomplete: there was nothing in it to say,
    and a sentence that tells so is spoken in its place."""


class CachedTokens(Object, frozen=True):
    """Tokens of the prompt that were in the model's cache."""

    text_tokens: int
    """All of them."""
    audio_tokens: Literal[0] = 0
    """None: the language model reads text."""
    image_tokens: Literal[0] = 0
    """None likewise."""


class InputTokens(Object, frozen=True):
    """The prompt."""

    text_tokens: int
    """All tokens of the prompt."""
    cached_tokens: int
    """Those of them that were in the model's cache."""
    cached_tokens_details: CachedTokens
    """What kind."""
    audio_tokens: Literal[0] = 0
    """None: the language model reads text."""
    image_tokens: Literal[0] = 0
    """None likewise."""


class OutputTokensUsed(Object, frozen=True):
    """What the model wrote."""

    text_tokens: int
    """All tokens of the response."""
    audio_tokens: Literal[0] = 0
    """None: speech is synthesised from the text."""


class Usage(Object, frozen=True):
    """Tokens of a response."""

    total_tokens: int
    """Prompt and response."""
    input_tokens: int
    """The prompt."""
    output_tokens: int
    """The response."""
    input_token_details: InputTokens
    """What kind of tokens."""
    output_token_details: OutputTokensUsed
    """What kind of tokens."""

    @staticmethod
    def of(prompt: int, cached: int, output: int) -> Usage:
        """`prompt` tokens, `cached` of them in the model's cache, and `output` written."""
        return Usage(
            total_tokens=prompt + output,
            input_tokens=prompt,
            output_tokens=output,
            input_token_details=InputTokens(prompt, cached, CachedTokens(cached)),
            output_token_details=OutputTokensUsed(output),
        )


class ResponseObject(Object, frozen=True, tag_field="object", tag="realtime.response"):
    """A response."""

    id: str
    """Its id."""
    status: Literal["in_progress", "completed", "cancelled", "failed", "incomplete"]
    """How it is, or how it ended."""
    status_details: StatusDetails | None
    """How it ended, unless it was completed."""
    output: tuple[Item, ...]
    """What was said and called; empty in `response.created`."""
    conversation_id: str | None
    """The conversation that it belongs to; null for none."""
    output_modalities: Modalities
    """As asked for."""
    audio: ResponseAudio
    """As asked for."""
    max_output_tokens: OutputTokens
    """As asked for."""
    usage: Usage | None
    """Tokens; null in `response.created`."""
    metadata: Mapping[str, str] | None
    """As the client gave it."""


class AudioPart(Object, frozen=True, tag="audio"):
    """A part that is spoken."""

    transcript: str
    """What was said."""


class TextPart(Object, frozen=True, tag="text"):
    """A part that is written."""

    text: str
    """What was written."""


class _OfItem(ServerEvent, frozen=True):
    response_id: str
    """The response."""
    item_id: str
    """The item."""
    output_index: int
    """Which item of the response."""


class _OfPart(_OfItem, frozen=True):
    content_index: int
    """Which part of the item; 0."""


class ResponseCreated(ServerEvent, frozen=True, tag="response.created"):
    """A response begins."""

    response: ResponseObject
    """The response."""


class OutputItemAdded(ServerEvent, frozen=True, tag="response.output_item.added"):
    """An item of a response begins."""

    response_id: str
    """The response."""
    output_index: int
    """Which item of the response, from 0."""
    item: Item
    """The item, without content yet."""


class ContentPartAdded(_OfPart, frozen=True, tag="response.content_part.added"):
    """A part of a message begins."""

    part: AudioPart | TextPart
    """The part, empty."""


class OutputAudioDelta(_OfPart, frozen=True, tag="response.output_audio.delta"):
    """More audio. A session with `binary_audio` gets a binary message instead."""

    delta: bytes
    """Whole samples, in the format that `response.created` tells."""
    start: Annotated[int, LOCAL]
    """Index of its first sample within the item."""
    length: Annotated[int, LOCAL]
    """How many samples at `sound.RATE` take as long."""

    def to_frame(self) -> bytes:
        """The binary message: `FRAME_HEADER`, then the samples."""
        return FRAME_HEADER.pack(self.item_id.encode("ascii"), self.start) + self.delta


class OutputTranscriptDelta(_OfPart, frozen=True, tag="response.output_audio_transcript.delta"):
    """More of what is said, not after its audio."""

    delta: str
    """What follows the transcript so far."""


class OutputTextDelta(_OfPart, frozen=True, tag="response.output_text.delta"):
    """More text."""

    delta: str
    """What follows the text so far."""


class ArgumentsDelta(_OfItem, frozen=True, tag="response.function_call_arguments.delta"):
    """More of the arguments of a call."""

    call_id: str
    """The call."""
    delta: str
    """What follows the text so far."""


class OutputAudioDone(_OfPart, frozen=True, tag="response.output_audio.done"):
    """No more audio comes."""


class OutputTranscriptDone(_OfPart, frozen=True, tag="response.output_audio_transcript.done"):
    """What was said; after an interruption, what was heard."""

    transcript: str
    """All of it; where it differs from the deltas, this is right."""


class OutputTextDone(_OfPart, frozen=True, tag="response.output_text.done"):
    """No more text comes."""

    text: str
    """All of it."""


class ArgumentsDone(_OfItem, frozen=True, tag="response.function_call_arguments.done"):
    """The arguments of a call are over; run it where `response.done` says `completed`."""

    call_id: str
    """The call."""
    name: str
    """The function."""
    arguments: str
    """All of them, as the text of a JSON object."""


class ContentPartDone(_OfPart, frozen=True, tag="response.content_part.done"):
    """A part of a message is over."""

    part: AudioPart | TextPart
    """The part, without audio."""


class OutputItemDone(ServerEvent, frozen=True, tag="response.output_item.done"):
    """An item of a response is over, whole or not."""

    response_id: str
    """The response."""
    output_index: int
    """Which item of the response."""
    item: Item
    """The item, without audio."""


class ResponseDone(ServerEvent, frozen=True, tag="response.done"):
    """A response is over, however it ended."""

    response: ResponseObject
    """The response, without audio."""
