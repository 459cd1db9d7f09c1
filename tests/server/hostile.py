"""Messages that strangers send: made from the protocol's own types, and most of them damaged."""

from __future__ import annotations

import copy
import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import soundfile as sf
from hypothesis import strategies as st

from tests.server.serving import RATE, to_wire
from tests.wire.stranger import KEYS, ODD_TEXTS, ODD_VALUES, places
from tests.wire.values import JSON, messages
from voiceloop.bundled import bundled
from voiceloop.settings.schema import changes
from voiceloop.wire.client_events import CLIENT_EVENTS
from voiceloop.wire.parsing import (
    MAX_BYTES,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_VALUES,
    UNSUPPORTED,
    parse,
    parse_binary,
)
from voiceloop.wire.settings import (
    InputAudio,
    ResponseSettings,
    SessionSettings,
    Transcription,
)

INVALID_UTF8, TOO_BIG = 1007, 1009
"""Close codes (RFC 6455, 7.4.1)."""
LAST = "the last item"
"""Stands, in a message, for the id of the item that the server told of last."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one frame carries; of a text frame any bytes, as no honest client would write them."""

    data: bytes
    text: bool = True

    @property
    def ends(self) -> int | None:
        """The close code that answers it, if that is the only answer there can be."""
        if len(self.data) > MAX_CHARACTERS:
            return TOO_BIG
        try:
            self.data.decode() if self.text else None
        except UnicodeDecodeError:
            return INVALID_UTF8
        return None

    def read(self) -> object:
        """The event that it is; ProtocolError where it is none."""
        return parse(self.data.decode()) if self.text else parse_binary(self.data)

    def about(self, item_id: str) -> Message:
        """The same with the id of an item that there is."""
        return Message(self.data.replace(LAST.encode(), item_id.encode()), self.text)

    def __repr__(self) -> str:
        kind, size = "text" if self.text else "binary", len(self.data)
        return f"<{kind} of {size} bytes {self.data[:300]!r}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows it: not in full, for a few are very long."""
        printer.text(repr(self))


# Valid --------------------------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "c", "root", LAST, LAST])
"""Few enough that items are found again."""
NAMED = ("item_id", "previous_item_id", "response_id", "call_id", "id")


def _renamed(message: dict[str, Any], ids: list[str]) -> dict[str, Any]:
    """`message` about items that may be there."""
    for holder, key in list(places(message)):
        if key in NAMED and isinstance(holder[key], str):
            holder[key] = ids[key == "id"]
    return message


EVENTS = [messages(kind) for kind in CLIENT_EVENTS.values()]
VALID = st.builds(_renamed, st.one_of(EVENTS), st.lists(IDS, min_size=2, max_size=2))


def text(value: object, *, ascii_only: bool = True) -> Message:
    """`value` as JSON; without `ascii_only`, halves of characters are bytes that are no UTF-8."""
    return Message(json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))


def event(kind: str, **fields: object) -> Message:
    """An event as JSON."""
    return text({"type": kind, **fields})


def update(**session: object) -> Message:
    """A `session.update`."""
    return event("session.update", session={"type": "realtime", **session})


def create(words: str, **fields: object) -> Message:
    """A message of the user's."""
    content = [{"type": "input_text", "text": words}]
    item = {"type": "message", "role": "user", "content": content}
    return event("conversation.item.create", item=item | fields)


# Damaged ------------------------------------------------------------------------------------------

ODD_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "-0", "01", "9" * 400]
RATES = [8000, 16_000, 24_000.0, 24_001, 48_000, 0, -1, 2**53, 2**64, "24000", None, True, [24000]]
ODD_AUDIO = [
    *("A", "AA", "AAA", "AAA=", "AB==", "AAE=", "A===", "====", "AAAA=", "AAAA====", "AA==AAAA"),
    *("AA AA", "AA\nAA", " AAAA", "-_-_", "AAAA\x00", "\u00e9AAA", "\ud800AAA", "AAAA" * 99 + "A"),
]


REFUSED = sorted(
    {
        key
        for kind in (SessionSettings, ResponseSettings, Transcription)
        for keys in ("unsupported", "tunes")
        for key in getattr(kind, keys, ())
    }
)
"""Keys that the API has and of which nothing comes here."""


@st.composite
def damaged_values(draw: st.DrawFn) -> Message:
    """A message in which some values are missing, elsewhere, or others."""
    message = copy.deepcopy(draw(VALID))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(message))
        if not found:
            break
        holder, key = draw(st.sampled_from(found))
        damage = draw(st.sampled_from(["drop", "rename", "retype", "copy", "add"]))
        if damage in ("rename", "add") and isinstance(holder, dict):
            odd = draw(st.sampled_from(ODD_VALUES))
            new = draw(st.sampled_from([*KEYS, *REFUSED, f"{key}s", str(key).upper()]))
            holder[new] = copy.deepcopy(odd) if damage == "add" else holder.pop(key)
        elif damage == "drop":
            del holder[key]
        elif damage == "copy":
            holder[key] = copy.deepcopy(draw(st.sampled_from(found))[0])
        else:
            holder[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
    return text(message, ascii_only=draw(st.integers(0, 9)) > 0)


@st.composite
def damaged_texts(draw: st.DrawFn) -> Message:
    """A message in whose text something is missing or stands where it should not."""
    written = json.dumps(draw(VALID), ensure_ascii=draw(st.booleans()))
    start = draw(st.integers(0, len(written)))
    end = min(len(written), start + draw(st.sampled_from([0, 0, 1, 1, 3, 50, 10**6])))
    odd = draw(st.sampled_from(["", *ODD_TEXTS]))
    return Message(f"{written[:start]}{odd}{written[end:]}".encode())


@st.composite
def odd_numbers(draw: st.DrawFn) -> Message:
    """A message with a number that JSON has not, or nobody can use."""
    message = copy.deepcopy(draw(VALID))
    holder, key = draw(st.sampled_from(list(places(message))))
    holder[key] = "a number"
    odd = draw(st.sampled_from(ODD_NUMBERS))
    return Message(json.dumps(message).replace('"a number"', odd).encode())


@st.composite
def deep(draw: st.DrawFn) -> Message:
    """Objects and lists in each other, about as many as may be, or very many."""
    levels = draw(st.sampled_from([MAX_DEPTH - 6, MAX_DEPTH - 1, MAX_DEPTH + 1, 500, 20_000]))
    opening, closing = draw(st.sampled_from([("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")]))
    nested = opening * levels + "0" + closing * draw(st.sampled_from([levels, levels, 0]))
    tool = '{"name": "t", "parameters": {"p": %s}}'
    around = draw(st.sampled_from(["%s", '{"type": "session.update", "session": %s}', None]))
    session = '{"type": "session.update", "session": {"type": "realtime", "tools": [%s]}}'
    return Message(((around or session % tool) % nested).encode())


ABOUT = st.builds(
    lambda kind, number, index: event(
        kind, item_id=LAST, **{"audio_ms": number} if "played" in kind else index
    ),
    st.sampled_from(["voiceloop.played", "conversation.item.truncate", "conversation.item.delete"]),
    st.sampled_from([0, 0.5, 1, 99, 10**6, 2**53, 1e308, -1]),
    st.sampled_from(
        [
            {},
            *(
                {"content_index": i, "audio_end_ms": e}
                for i in (0, 1, 2**53)
                for e in (0, 1, 99, 2**53)
            ),
        ]
    ),
)
"""What is said about a response while it is given."""

# Unlike anything ----------------------------------------------------------------------------------

NOISE = st.builds(Message, st.binary(max_size=200), st.just(True)) | st.text(
    st.characters(exclude_categories=[]), max_size=100
).map(lambda chosen: Message(chosen.encode("utf-8", "surrogatepass")))
JSON_TEXTS = JSON.map(text) | st.sampled_from([event(name) for name in UNSUPPORTED])
BINARY = st.builds(Message, st.binary(max_size=2000), st.just(False))


@cache
def demo() -> bytes:
    """A question, as audio of messages."""
    pcm, rate = sf.read(bundled("models/starter/demo.wav"), dtype="float32")
    return to_wire(np.asarray(pcm, np.float32), rate)


def speech(start: int, length: int) -> Message:
    """A part of it, `length` tenths of a second."""
    tenth = 2 * RATE // 10
    return Message(demo()[start * tenth : (start + length) * tenth], text=False)


def silence(length: int) -> Message:
    """So many tenths of a second."""
    return Message(bytes(2 * RATE // 10 * length), text=False)


def in_base64(message: Message) -> Message:
    """Audio as JSON carries it."""
    return event("input_audio_buffer.append", audio=b64encode(message.data).decode())


def listening(detection: object) -> Message:
    """A change of how turns are found."""
    return update(audio={"input": {"turn_detection": detection}})


SOUNDS = st.builds(speech, st.integers(0, 20), st.integers(1, 20)) | st.integers(0, 30).map(silence)
AUDIO = (
    st.sampled_from(ODD_AUDIO).map(lambda audio: event("input_audio_buffer.append", audio=audio))
    | SOUNDS.map(in_base64)
    | SOUNDS
)
FORMATS = st.builds(
    lambda side, kind: update(audio={side: {"format": {"type": kind}}}),
    st.sampled_from(["input", "output"]),
    st.sampled_from(["audio/pcm", "audio/pcmu", "audio/pcma"]),
)
LISTENING = messages(changes(InputAudio)).map(lambda changed: update(audio={"input": changed}))
WRONG_FORMATS = st.builds(
    lambda side, kind, rate: update(audio={side: {"format": {"type": kind, "rate": rate}}}),
    st.sampled_from(["input", "output"]),
    st.sampled_from(["audio/pcm", "audio/pcmu", "audio/pcma", "pcm16", "", None, 1]),
    st.sampled_from(RATES),
)


TOOL = {"name": "t", "description": "d" * 10_000}
LARGE: dict[str, Callable[[], Message]] = {
    "a text as long as may be": lambda: Message(b"x" * MAX_CHARACTERS),
    "a text too long": lambda: Message(b" " * (MAX_CHARACTERS + 1)),
    "audio as long as may be": lambda: Message(bytes(MAX_BYTES), text=False),
    "audio too long": lambda: Message(bytes(MAX_BYTES + 2), text=False),
    "a frame too long": lambda: Message(bytes(MAX_CHARACTERS + 2), text=False),
    "more base64 than waits": lambda: event("input_audio_buffer.append", audio="A" * 4_100_000),
    "brackets alone": lambda: Message(b"[" * 1_000_000),
    "quotes alone": lambda: Message(b'"' * 1_000_001),
    "escapes alone": lambda: Message(b'"' + b"\\" * 2_000_001),
    "more values than may be": lambda: text({"type": [0] * (MAX_VALUES + 1)}),
    "as many keys as may be": lambda: text(dict.fromkeys(map(str, range(MAX_VALUES - 2)), 0)),
    "a long message": lambda: create("x " * 100_000),
    "a message larger than a conversation": lambda: create("x" * 300_000),
    "long instructions": lambda: update(instructions="y " * 50_000),
    "instructions too long": lambda: update(instructions="y" * 100_001),
    "many tools": lambda: update(tools=[TOOL] * 100),
    "too many tools": lambda: update(tools=[TOOL] * 128),
    "a long name": lambda: event("x" * 1_000_000),
    "a long id": lambda: event("response.cancel", event_id="e" * 513),
    "a long key": lambda: text({"type": "response.cancel", "k" * 1_000_000: 0}),
    "a long number": lambda: Message(
        b'{"type": "response.cancel", "event_id": ' + b"9" * 10**6 + b"}"
    ),
}
"""Messages as large as can be, and larger."""


@cache
def large(name: str) -> Message:
    """One of them, made once."""
    return LARGE[name]()


HUGE = st.sampled_from(sorted(LARGE)).map(large)

KINDS = {
    "valid": (20, VALID.map(text)),
    "damaged values": (23, damaged_values()),
    "damaged texts": (12, damaged_texts()),
    "odd numbers": (6, odd_numbers()),
    "audio": (6, AUDIO),
    "formats": (3, FORMATS),
    "listening": (3, LISTENING),
    "about the last": (6, ABOUT),
    "wrong formats": (4, WRONG_FORMATS),
    "deep": (4, deep()),
    "binary": (5, BINARY),
    "json": (4, JSON_TEXTS),
    "noise": (3, NOISE),
    "huge": (1, HUGE),
}
"""What is sent, and how much of each in a hundred."""
MESSAGES = st.sampled_from(
    [name for name, (count, _) in KINDS.items() for _ in range(count)]
).flatmap(lambda name: KINDS[name][1])
