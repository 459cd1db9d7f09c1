"""The items of a conversation: messages of both sides, function calls and their outputs.

Items are frozen values; the ledger in `ledger.py` keeps them in order. Ids that the server makes
are the kind of object, an underscore, and random characters. Audio in messages is bytes in the
format that the session sets, in JSON as base64.
"""

from __future__ import annotations

import binascii
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec import UNSET, Meta, UnsetType, to_builtins
from msgspec.structs import force_setattr, replace

from voiceloop.settings.schema import Mistake, Object

LENGTH = 24
"""Number of characters in every id that the server makes. The header of binary audio relies on
it."""
LETTERS = string.ascii_letters + string.digits
_LETTER = (LETTERS * 5)[:256].encode("ascii")
"""The letter or digit that each value of a random byte becomes."""

NewId = Callable[[str], str]
"""A function that takes the kind of an object and returns a new id. Kinds are `event`, `item`,
`resp`, `conv`, `sess` and `call`."""


def maker(random: Random) -> NewId:
    """Return a function that makes ids from the bytes of `random`. Nobody can guess ids from
    `SystemRandom`."""

    def new(kind: str) -> str:
        # Draw all bytes in one call: every event that is sent needs an id.
        drawn = random.randbytes(LENGTH - len(kind) - 1).translate(_LETTER)
        return f"{kind}_{drawn.decode('ascii')}"

    return new


RATE = 24_000
"""Rate in Hz at which audio is counted in every format. A sample of G.711, at 8000 Hz, counts as
three."""


class AudioBytes(bytes):
    """Encoded audio, made from bytes or from their base64. It does not know its own format."""

    described = "audio in base64"

    def __new__(cls, data: str | bytes) -> Self:
        """Decode `data` if it is text. Raises Mistake if the text is not base64."""
        # Not `bytes(data)`: from a number n it would make n zeros. `memoryview` refuses a number.
        return super().__new__(cls, _decoded(data) if isinstance(data, str) else memoryview(data))


def _decoded(text: str) -> bytes:
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        data = None
    if data is None or not _encodes(data[(len(data) - 1) // 3 * 3 :], text[-4:]):
        raise Mistake("is not base64", "use the standard alphabet, with padding")
    return data


def _encodes(data: bytes, text: str) -> bool:
    """Return whether `text` is the base64 of `data`. This finds damage in the last bits of the
    text, which belong to no byte."""
    return binascii.b2a_base64(data, newline=False) == text.encode()


def plain(value: object) -> Any:
    """Convert `value` to types that `json.dumps` takes; audio becomes base64."""
    return to_builtins(value, enc_hook=_base64)


def _base64(value: object) -> str:
    if isinstance(value, bytes):  # of a subclass, which msgspec does not encode itself
        return binascii.b2a_base64(value, newline=False).decode("ascii")
    raise TypeError(f"{type(value).__name__} is nothing for the wire")


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
