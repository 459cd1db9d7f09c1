"""The items of a conversation: what was said on either side, calls of functions and their results.

Frozen values; where they are kept in order is `ledger.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import force_setattr, replace

from voiceloop.schema import Object
from voiceloop.wire.sound import AudioBytes

ItemId = Annotated[str, Meta(max_length=64)]
Status = Literal["completed", "incomplete", "in_progress"]


class ClientEventBase(Object, frozen=True, kw_only=True):
    """What all events of a client have in common."""

    event_id: Annotated[str, Meta(max_length=512)] | None = None
    """The client's own name for the event, told again in errors."""


class InputText(Object, frozen=True, tag="input_text"):
    """Text from the client."""

    text: str
    """The text."""


class InputAudioPart(Object, frozen=True, tag="input_audio"):
    """Speech of the user."""

    audio: AudioBytes | UnsetType | None = UNSET
    """Its sound, in base64; told by `conversation.item.retrieved` only."""
    transcript: str | None = None
    """What was said, as far as it is known."""

    def __post_init__(self) -> None:
        if self.audio is None:  # as good as absent, and told as that
            force_setattr(self, "audio", UNSET)


class OutputText(Object, frozen=True, tag="output_text"):
    """Text of the model."""

    text: str
    """The text."""


class OutputAudioPart(Object, frozen=True, tag="output_audio"):
    """Speech of the model."""

    unsupported: ClassVar = {"audio": "send the words as `output_text`"}

    transcript: str = ""
    """What was said; where it was interrupted, as far as it was heard."""


Part = InputText | InputAudioPart | OutputText | OutputAudioPart
Role = Literal["system", "user", "assistant"]
PARTS: Mapping[Role, tuple[type[Part], ...]] = {
    "system": (InputText,),
    "user": (InputText, InputAudioPart),
    "assistant": (OutputText, OutputAudioPart),
}
"""What messages are made of, by their role."""


class Message(Object, frozen=True, tag="message"):
    """What was said or written, or is for the model to know."""

    role: Role
    """Who says it; `assistant` is the model, of which a client can create written messages only."""
    content: Annotated[tuple[Part, ...], Meta(max_length=64)]
    """Its parts: text of the `system`, text and audio of the `user`, output of the `assistant`."""
    id: ItemId = ""
    """The item's id; a client may leave it to the server."""
    status: Status = "completed"
    """Whether it is whole; `incomplete` where it was interrupted."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always this."""


class FunctionCall(Object, frozen=True, tag="function_call"):
    """The model calls a function of the client."""

    name: Annotated[str, Meta(max_length=64)]
    """The function."""
    arguments: str
    """Its arguments, as the text of a JSON object."""
    call_id: Annotated[str, Meta(max_length=64)] = ""
    """By which its output names the call; a client may leave it to the server."""
    id: ItemId = ""
    """The item's id; a client may leave it to the server."""
    status: Status = "completed"
    """Whether it is whole; `incomplete` where it was interrupted."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always this."""


class FunctionCallOutput(Object, frozen=True, tag="function_call_output"):
    """What a function returned."""

    call_id: Annotated[str, Meta(max_length=64)]
    """The call."""
    output: str
    """Any text; the model reads it."""
    id: ItemId = ""
    """The item's id; a client may leave it to the server."""
    status: Status = "completed"
    """Whether it is whole."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always this."""


Item = Message | FunctionCall | FunctionCallOutput


class ItemReference(Object, frozen=True, tag="item_reference"):
    """An item of the conversation."""

    id: ItemId
    """The item's id."""


def without_audio(item: Item) -> Item:
    """`item` as events tell it: only `conversation.item.retrieved` carries audio."""
    if not isinstance(item, Message):
        return item
    parts = (
        replace(part, audio=UNSET) if isinstance(part, InputAudioPart) else part
        for part in item.content
    )
    return replace(item, content=tuple(parts))


def size(item: Item) -> int:
    """About how many bytes an item takes."""
    return _OVERHEAD + sum(_weight(part) for part in _texts(item))


_OVERHEAD = 512


def _weight(text: str | bytes | UnsetType | None) -> int:
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
