"""The items of a conversation: what was said on either side, calls of functions and their results.

Frozen values; where they are kept in order is `ledger.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from voiceloop.realtime.schema import LOCAL, OPTIONAL, Most

ItemId = Annotated[str, Most(64)]
EventId = Annotated[str, Most(512)] | None
"""A client's own name for an event of its own."""
Status = Literal["completed", "incomplete", "in_progress"]


@dataclass(frozen=True, slots=True)
class InputText:
    """Text from the client."""

    tags: ClassVar = {"type": "input_text"}

    text: str
    """The text."""


@dataclass(frozen=True, slots=True)
class InputAudioPart:
    """Speech of the user."""

    tags: ClassVar = {"type": "input_audio"}

    audio: bytes | None = field(default=None, metadata=OPTIONAL)
    """PCM16 at 24 kHz, in base64; told by `conversation.item.retrieved` only."""
    transcript: str | None = None
    """What was said, as far as it is known."""


@dataclass(frozen=True, slots=True)
class OutputText:
    """Text of the model."""

    tags: ClassVar = {"type": "output_text"}

    text: str
    """The text."""


@dataclass(frozen=True, slots=True)
class OutputAudioPart:
    """Speech of the model."""

    tags: ClassVar = {"type": "output_audio"}
    unsupported: ClassVar = {"audio": "send the words as `output_text`"}

    transcript: str = ""
    """What was said; where it was interrupted, as far as it was heard."""
    samples: int = field(default=0, metadata=LOCAL)
    """Length of the audio, in samples at 24 kHz."""


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Something for the model to know."""

    tags: ClassVar = {"type": "message", "role": "system"}

    content: Annotated[tuple[InputText, ...], Most(64)]
    """Its parts."""
    id: ItemId = ""
    """The item's id; a client may leave it to the server."""
    status: Status = "completed"
    """Whether it is whole."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always this."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user said or wrote."""

    tags: ClassVar = {"type": "message", "role": "user"}

    content: Annotated[tuple[InputText | InputAudioPart, ...], Most(64)]
    """Its parts."""
    id: ItemId = ""
    """The item's id; a client may leave it to the server."""
    status: Status = "completed"
    """Whether it is whole."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always this."""


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model said or wrote; a client can create written ones only."""

    tags: ClassVar = {"type": "message", "role": "assistant"}

    content: Annotated[tuple[OutputText | OutputAudioPart, ...], Most(64)]
    """Its parts."""
    id: ItemId = ""
    """The item's id; a client may leave it to the server."""
    status: Status = "completed"
    """Whether it is whole; `incomplete` where it was interrupted."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always this."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The model calls a function of the client."""

    tags: ClassVar = {"type": "function_call"}

    name: Annotated[str, Most(64)]
    """The function."""
    arguments: str
    """Its arguments, as the text of a JSON object."""
    call_id: Annotated[str, Most(64)] = ""
    """By which its output names the call; a client may leave it to the server."""
    id: ItemId = ""
    """The item's id; a client may leave it to the server."""
    status: Status = "completed"
    """Whether it is whole; `incomplete` where it was interrupted."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always this."""


@dataclass(frozen=True, slots=True)
class FunctionCallOutput:
    """What a function returned."""

    tags: ClassVar = {"type": "function_call_output"}

    call_id: Annotated[str, Most(64)]
    """The call."""
    output: str
    """Any text; the model reads it."""
    id: ItemId = ""
    """The item's id; a client may leave it to the server."""
    status: Status = "completed"
    """Whether it is whole."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always this."""


Item = SystemMessage | UserMessage | AssistantMessage | FunctionCall | FunctionCallOutput


def without_audio(item: Item) -> Item:
    """`item` as events tell it: only `conversation.item.retrieved` carries audio."""
    if not isinstance(item, UserMessage):
        return item
    parts = (
        replace(part, audio=None) if isinstance(part, InputAudioPart) else part
        for part in item.content
    )
    return replace(item, content=tuple(parts))


def size(item: Item) -> int:
    """About how many bytes an item takes."""
    return _OVERHEAD + sum(_weight(part) for part in _texts(item))


_OVERHEAD = 512


def _weight(text: str | bytes | None) -> int:
    return len(text) * (4 if isinstance(text, str) else 1) if text else 0


def _texts(item: Item) -> list[Any]:
    match item:
        case FunctionCall():
            return [item.arguments]
        case FunctionCallOutput():
            return [item.output]
        case _:
            names = ("text", "transcript", "audio")
            return [getattr(part, name, None) for part in item.content for name in names]
