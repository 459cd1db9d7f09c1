"""The items of a conversation: messages of both sides, function calls and their outputs.

Items are frozen values; the ledger in `ledger.py` keeps them in order.
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
    """The base of all events that a client can send."""

    event_id: Annotated[str, Meta(max_length=512)] | None = None
    """The client's own id of the event; errors about the event repeat it."""


class InputText(Object, frozen=True, tag="input_text"):
    """Text that the client gives."""

    text: str
    """The text."""


class InputAudioPart(Object, frozen=True, tag="input_audio"):
    """Speech of the user."""

    audio: AudioBytes | UnsetType | None = UNSET
    """Audio in base64; the server sends it only in `conversation.item.retrieved`."""
    transcript: str | None = None
    """Transcript of the speech; null while it is unknown."""

    def __post_init__(self) -> None:
        if self.audio is None:  # null counts as absent, and absent keys are not sent
            force_setattr(self, "audio", UNSET)


class OutputText(Object, frozen=True, tag="output_text"):
    """Text of the model."""

    text: str
    """The text."""


class OutputAudioPart(Object, frozen=True, tag="output_audio"):
    """Speech of the model."""

    unsupported: ClassVar = {"audio": "send the words as `output_text`"}

    transcript: str = ""
    """Transcript of the speech. After an interruption it has only the part that was heard."""


Part = InputText | InputAudioPart | OutputText | OutputAudioPart
Role = Literal["system", "user", "assistant"]
PARTS: Mapping[Role, tuple[type[Part], ...]] = {
    "system": (InputText,),
    "user": (InputText, InputAudioPart),
    "assistant": (OutputText, OutputAudioPart),
}
"""The kinds of content part that a message may have, by its role."""


class Message(Object, frozen=True, tag="message"):
    """Words that were said or written, or a note for the model."""

    tunes: ClassVar = {"phase": "commentary is not told from the final answer"}

    role: Role
    """The author. `assistant` is the model; a client can create its written messages, but no spoken
    ones. Messages of `system` are instructions or notes for the model."""
    content: Annotated[tuple[Part, ...], Meta(max_length=64)]
    """The parts: text of the `system`, text or audio of the `user`, output of the `assistant`."""
    id: ItemId = ""
    """Id of the item; the server chooses one if the client gives none."""
    status: Status = "completed"
    """`in_progress` until the message ends. Then `completed`, or `incomplete` if its response was
    not completed."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always `realtime.item`."""


class FunctionCall(Object, frozen=True, tag="function_call"):
    """A call of one of the client's functions by the model."""

    name: Annotated[str, Meta(max_length=64)]
    """Name of the function."""
    arguments: str
    """Arguments of the call, as the text of a JSON object."""
    call_id: Annotated[str, Meta(max_length=64)] = ""
    """Id of the call, which the function's output repeats. The server chooses one if the client
    gives none."""
    id: ItemId = ""
    """Id of the item; the server chooses one if the client gives none."""
    status: Status = "completed"
    """`in_progress` until the arguments end. Then `completed`, or `incomplete` if the response
    ended before them."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always `realtime.item`."""


class FunctionCallOutput(Object, frozen=True, tag="function_call_output"):
    """The output of a function that the model called."""

    call_id: Annotated[str, Meta(max_length=64)]
    """Id of the call."""
    output: str
    """The output, as any text; the model reads it."""
    id: ItemId = ""
    """Id of the item; the server chooses one if the client gives none."""
    status: Status = "completed"
    """Always `completed`, whatever the client gives."""
    object: Literal["realtime.item"] = "realtime.item"
    """Always `realtime.item`."""


Item = Message | FunctionCall | FunctionCallOutput


class ItemReference(Object, frozen=True, tag="item_reference"):
    """A reference to an item of the conversation."""

    id: ItemId
    """Id of the item."""


def without_audio(item: Item) -> Item:
    """Return `item` without its audio, which only `conversation.item.retrieved` sends."""
    if not isinstance(item, Message):
        return item
    parts = (
        replace(part, audio=UNSET) if isinstance(part, InputAudioPart) else part
        for part in item.content
    )
    return replace(item, content=tuple(parts))


def size(item: Item) -> int:
    """Estimate the memory that an item takes, in bytes."""
    return _OVERHEAD + sum(_weight(part) for part in _texts(item))


_OVERHEAD = 512
"""Estimated memory of an item without its texts and audio, in bytes."""


def _weight(text: str | bytes | UnsetType | None) -> int:
    """Estimate the memory of a text or of audio, in bytes: up to four for each character."""
    return len(text) * (4 if isinstance(text, str) else 1) if text else 0


def _texts(item: Item) -> list[Any]:
    """Return the texts and the audio of an item; None or UNSET for absent ones."""
    match item:
        case FunctionCall():
            return [item.arguments]
        case FunctionCallOutput():
            return [item.output]
        case _:
            names = ("text", "transcript", "audio")
            return [getattr(part, name, None) for part in item.content for name in names]
