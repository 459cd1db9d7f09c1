"""Events from the server about a response; `responses.py` documents their order."""

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
