"""What the server says of a response. The order of these events is that of `responses.py`."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from voiceloop.realtime.event import Event
from voiceloop.realtime.ids import LENGTH
from voiceloop.realtime.items import Item
from voiceloop.realtime.schema import LOCAL
from voiceloop.realtime.settings import Modalities, OutputTokens, ResponseAudio

FRAME_HEADER = struct.Struct(f"<{LENGTH}sI")
"""Header of binary audio: the item's id in ASCII, and the index of the first sample."""


@dataclass(frozen=True, slots=True)
class StatusError:
    """Why a response failed, or what it lacks."""

    type: str
    """What kind of error."""
    code: str | None = None
    """What kind of error, more exactly."""
    message: str | None = None
    """What happened."""


@dataclass(frozen=True, slots=True)
class StatusDetails:
    """How a response that was not completed ended."""

    type: Literal["cancelled", "failed", "incomplete"]
    """The status again."""
    reason: Literal["turn_detected", "client_cancelled", "max_output_tokens"] | None = None
    """Why it was cancelled or is incomplete: the user spoke, the client asked, it was too long."""
    error: StatusError | None = None
    """Why it failed; with code `nothing_said` why it is incomplete: there was nothing in it to say,
    and a sentence that tells so is spoken in its place."""


@dataclass(frozen=True, slots=True)
class CachedTokens:
    """Tokens of the prompt that were in the model's cache."""

    text_tokens: int
    """All of them."""
    audio_tokens: Literal[0] = 0
    """None: the language model reads text."""
    image_tokens: Literal[0] = 0
    """None likewise."""


@dataclass(frozen=True, slots=True)
class InputTokens:
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


@dataclass(frozen=True, slots=True)
class OutputTokensUsed:
    """What the model wrote."""

    text_tokens: int
    """All tokens of the response."""
    audio_tokens: Literal[0] = 0
    """None: speech is synthesised from the text."""


@dataclass(frozen=True, slots=True)
class Usage:
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


@dataclass(frozen=True, slots=True)
class ResponseObject:
    """A response."""

    tags: ClassVar = {"object": "realtime.response"}

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


@dataclass(frozen=True, slots=True)
class ResponseCreated(Event):
    """A response begins."""

    tags: ClassVar = {"type": "response.created"}

    response: ResponseObject
    """The response."""


@dataclass(frozen=True, slots=True)
class ResponseDone(Event):
    """A response is over, however it ended."""

    tags: ClassVar = {"type": "response.done"}

    response: ResponseObject
    """The response, without audio."""


@dataclass(frozen=True, slots=True)
class OutputItemAdded(Event):
    """An item of a response begins."""

    tags: ClassVar = {"type": "response.output_item.added"}

    response_id: str
    """The response."""
    output_index: int
    """Which item of the response, from 0."""
    item: Item
    """The item, without content yet."""


@dataclass(frozen=True, slots=True)
class OutputItemDone(Event):
    """An item of a response is over, whole or not."""

    tags: ClassVar = {"type": "response.output_item.done"}

    response_id: str
    """The response."""
    output_index: int
    """Which item of the response."""
    item: Item
    """The item, without audio."""


@dataclass(frozen=True, slots=True)
class AudioPart:
    """A part that is spoken."""

    tags: ClassVar = {"type": "audio"}

    transcript: str
    """What was said."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part that is written."""

    tags: ClassVar = {"type": "text"}

    text: str
    """What was written."""


@dataclass(frozen=True, slots=True)
class _OfItem(Event):
    response_id: str
    """The response."""
    item_id: str
    """The item."""
    output_index: int
    """Which item of the response."""


@dataclass(frozen=True, slots=True)
class _OfPart(_OfItem):
    content_index: int
    """Which part of the item; 0."""


@dataclass(frozen=True, slots=True)
class ContentPartAdded(_OfPart):
    """A part of a message begins."""

    tags: ClassVar = {"type": "response.content_part.added"}

    part: AudioPart | TextPart
    """The part, empty."""


@dataclass(frozen=True, slots=True)
class ContentPartDone(_OfPart):
    """A part of a message is over."""

    tags: ClassVar = {"type": "response.content_part.done"}

    part: AudioPart | TextPart
    """The part, without audio."""


@dataclass(frozen=True, slots=True)
class OutputAudioDelta(_OfPart):
    """More audio. A session with `binary_audio` gets a binary message instead."""

    tags: ClassVar = {"type": "response.output_audio.delta"}

    delta: bytes
    """PCM16, little-endian, mono, 24 kHz."""
    start: int = field(metadata=LOCAL)
    """Index of its first sample within the item."""

    def to_frame(self) -> bytes:
        """The binary message: `FRAME_HEADER`, then the samples."""
        return FRAME_HEADER.pack(self.item_id.encode("ascii"), self.start) + self.delta


@dataclass(frozen=True, slots=True)
class OutputAudioDone(_OfPart):
    """No more audio comes."""

    tags: ClassVar = {"type": "response.output_audio.done"}


@dataclass(frozen=True, slots=True)
class OutputTranscriptDelta(_OfPart):
    """More of what is said, not after its audio."""

    tags: ClassVar = {"type": "response.output_audio_transcript.delta"}

    delta: str
    """What follows the transcript so far."""


@dataclass(frozen=True, slots=True)
class OutputTranscriptDone(_OfPart):
    """What was said; after an interruption, what was heard."""

    tags: ClassVar = {"type": "response.output_audio_transcript.done"}

    transcript: str
    """All of it; where it differs from the deltas, this is right."""


@dataclass(frozen=True, slots=True)
class OutputTextDelta(_OfPart):
    """More text."""

    tags: ClassVar = {"type": "response.output_text.delta"}

    delta: str
    """What follows the text so far."""


@dataclass(frozen=True, slots=True)
class OutputTextDone(_OfPart):
    """No more text comes."""

    tags: ClassVar = {"type": "response.output_text.done"}

    text: str
    """All of it."""


@dataclass(frozen=True, slots=True)
class ArgumentsDelta(_OfItem):
    """More of the arguments of a call."""

    tags: ClassVar = {"type": "response.function_call_arguments.delta"}

    call_id: str
    """The call."""
    delta: str
    """What follows the text so far."""


@dataclass(frozen=True, slots=True)
class ArgumentsDone(_OfItem):
    """The arguments of a call are over; run it where `response.done` says `completed`."""

    tags: ClassVar = {"type": "response.function_call_arguments.done"}

    call_id: str
    """The call."""
    name: str
    """The function."""
    arguments: str
    """All of them, as the text of a JSON object."""
