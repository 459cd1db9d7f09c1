"""Parse the stream of a server of chat completions: bytes in, pieces of a reply out.

The stream consists of server-sent events. The data of each event is a chunk: JSON
with a little of the reply. The data of the last event is `[DONE]`. Servers differ. Tool calls come
whole or in fragments (`tool_calls`). Token counts come in a separate chunk, with another one, or
not at all. An error may come instead of a chunk (`errors`). This module never waits, and does
not know how the reply is used.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from voiceloop.foreign import entries, mapping, parsed
from voiceloop.llm.remote.errors import Garbled, ReportedError, reported_error
from voiceloop.llm.remote.tool_calls import StreamedCall, ToolCallDeltas

MOST_COUNTED = 1_000_000_000
"""Largest number of tokens that a server is believed to have counted. A larger number counts as
0."""
PIECE = 1000
"""Maximum number of characters in a piece of text. So a reply in one chunk still ends at its limit,
and is not worked on all at once."""
DEEPEST = 8
"""Maximum number of nested levels of content in which texts are read."""
_DONE = "[DONE]"
_THOUGHT = re.compile(r"reasoning|thinking|thought", re.IGNORECASE)
"""A pattern of the keys that hold thoughts in a server's chunks, and of the types of content parts
that are thoughts."""
_HALF = re.compile("[\ud800-\udbff]\\Z")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the model's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A sign that the model works on the reply: a piece of its thoughts. The text may be empty."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Calling:
    """A sign that the model is writing a tool call."""


@dataclass(frozen=True, slots=True)
class Loading:
    """A sign that the server loads the model before it begins the reply."""


@dataclass(frozen=True, slots=True)
class PromptUsage:
    """Token counts of a reply, as the server reports them."""

    tokens: int
    """Number of tokens of the prompt, without those that the server had in its cache."""
    thought: int = 0
    """Number of tokens of the model's thoughts."""
    cached: int | None = None
    """Number of tokens of the prompt that the server had in its cache; None if it does not tell."""


@dataclass(frozen=True, slots=True)
class FirstWords:
    """The moment before the first text or call of a reply."""

    after_s: float
    """Seconds since the request."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a complete reply."""

    cut: bool
    """Whether the reply was cut off at its token limit."""
    filtered: bool = False
    """Whether a filter of the server has cut the reply off."""


Piece = Text | Thought | Calling | Loading | StreamedCall | PromptUsage | FirstWords | End


_FAILED = re.compile(r"abort|error|cancel|insufficient|time.?out|fail|overload", re.IGNORECASE)
"""A pattern of reasons for the end of a reply that mean that the rest of it is missing."""
_CUT = re.compile(r"length|max|trunc", re.IGNORECASE)
"""A pattern of reasons that mean that a limit has cut the reply off."""
_FILTERED = re.compile(r"filter|safety|sensitive|recitation|prohibited|block", re.IGNORECASE)
"""A pattern of reasons that mean that a filter has cut the reply off."""


class ChatStream:
    """A parser of one reply.

    Call `feed` with blocks of bytes until the stream is `over` or there are no more blocks, then
    once with an empty block. `feed` raises Garbled and ReportedError, but only after it has
    returned the pieces before the error.
    """

    def __init__(self) -> None:
        self.finished = False
        """Whether the server has said that the reply is complete. Token counts may still come."""
        self.over = False
        """Whether the stream has ended."""
        self._events = EventStream()
        self._half = ""
        """First half of a surrogate pair at the end of the text so far. The other half may still
        come."""
        self._begun = self._spoke = False
        """Whether any part of the reply has come, and whether text has come."""
        self._deltas = ToolCallDeltas()
        self._wrong: Garbled | ReportedError | None = None
        """Error after the pieces that were returned last. The next call of `feed` raises it."""

    def feed(self, block: bytes) -> list[Piece]:
        """Add `block` and return the pieces that are complete now, in order."""
        if self._wrong:
            raise self._wrong
        pieces: list[Piece] = []
        try:
            for name, data in self._events.feed(block):
                if not self.over:
                    pieces.extend(self._take(name, data))
        except (Garbled, ReportedError) as error:
            if not pieces:
                raise
            self._wrong = error
        return pieces

    def _take(self, name: str, data: str) -> Iterator[Piece]:
        if data.strip() == _DONE:
            yield from self._done()
        else:
            yield from self._chunk(_parsed(name, data), name)

    def _done(self) -> Iterator[Piece]:
        self.over = True
        if not self._begun:
            raise Garbled("the end of a reply that has not begun")
        if not self.finished:
            yield from self._ended()

    def _chunk(self, chunk: Mapping[str, Any], name: str) -> Iterator[Piece]:
        choice = _choice(chunk.get("choices"))
        if choice is not None and not self.finished:
            self._begun = True
            yield from self._more(choice)
        if wrong := reported_error(chunk, name):
            raise wrong
        if choice is not None and not self.finished and (reason := choice.get("finish_reason")):
            if _FAILED.search(str(reason)):
                raise ReportedError(f"the reply was ended early ({reason})")
            cut, filtered = _CUT.search(str(reason)), _FILTERED.search(str(reason))
            yield from self._ended(cut is not None, filtered=filtered is not None)
        if usage := usage_of(chunk):
            yield usage

    def _more(self, choice: Mapping[str, Any]) -> Iterator[Piece]:
        """Yield the pieces in `choice`, which is a part of a streamed reply, or a whole reply that
        is not streamed."""
        delta, whole = mapping(choice.get("delta")), mapping(choice.get("message"))
        given: list[Piece] = []
        if said := delta or ({} if self._spoke else whole):
            for key, value in said.items():
                if _THOUGHT.match(key) and not given:  # some servers send the same thought twice
                    given += map(Thought, _texts(value))
            for key in ("content", "refusal"):
                given += self._said(said.get(key))
        if called := delta.get("tool_calls") or whole.get("tool_calls"):
            self._deltas.gather(called)
            given.append(Calling())
        if called := delta.get("function_call"):  # the older form, for a single call
            self._deltas.gather({"function": called})
            given.append(Calling())
        yield from given or ([] if choice.get("finish_reason") else [Thought()])

    def _said(self, content: object) -> Iterator[Piece]:
        """Yield the pieces of `content`, which is a text or a list of parts. A part may be a
        thought."""
        if isinstance(content, str):
            if content:
                yield from self._whole(content)
            return
        for part in _several(content):
            kind = mapping(part).get("type")
            if isinstance(kind, str) and _THOUGHT.match(kind):
                yield Thought("".join(_texts(part)))
            elif kind in (None, "text", "output_text", "refusal"):
                for text in _texts(part):
                    yield from self._whole(text)

    def _whole(self, text: str) -> Iterator[Piece]:
        """Yield `text`, with U+FFFD in place of each half of a surrogate pair that stands alone;
        JSON can contain such halves. If `text` ends with a first half, that half waits for the
        other half."""
        text = self._half + text
        found = _HALF.search(text)
        self._half = found[0] if found else ""
        text = text.removesuffix(self._half)
        if text:
            self._spoke = True
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            yield from (Text(text[at : at + PIECE]) for at in range(0, len(text), PIECE))

    def _ended(self, cut: bool = False, filtered: bool = False) -> Iterator[Piece]:
        self.finished = True
        if self._half:
            yield Text("\ufffd")
        yield from self._deltas.calls()
        yield End(cut, filtered)


def _choice(choices: object) -> Mapping[str, Any] | None:
    """Return the choice with the index 0, the only one that is requested. None if it is not there.
    A choice without an index counts as that one."""
    every = map(mapping, entries(choices))
    return next((one for one in every if one.get("index") in (None, 0, "0")), None)


def _texts(value: object, depth: int = 0) -> list[str]:
    """Return the texts in a part of content, nested up to `DEEPEST` levels."""
    if isinstance(value, str):
        return [value] if value else []
    found = list[str]()
    if depth < DEEPEST:
        for one in _several(value):
            if isinstance(one, str):
                found += _texts(one)
            for key in ("text", "thinking", "reasoning", "content", "summary", "value", "refusal"):
                found += _texts(mapping(one).get(key), depth + 1)
    return found


def _parsed(name: str, data: str) -> Mapping[str, Any]:
    try:
        chunk = parsed(data)
    except ValueError:
        if name == "error":
            raise ReportedError(" ".join(data.split())) from None
        raise Garbled("data that is no JSON") from None
    if isinstance(chunk, dict):
        return mapping(cast(object, chunk))
    if name == "error":
        return {"error": chunk}
    raise Garbled("a chunk that is no object")


def _several(value: object) -> list[Any]:
    """Return `value` if it is a list, `[value]` if it is an object, and otherwise an empty list."""
    return [value] if isinstance(value, dict) else entries(value)


def usage_of(answer: Mapping[str, Any]) -> PromptUsage | None:
    """Return the token counts in an answer or a chunk; None if it has none."""
    if not (usage := mapping(answer.get("usage"))):
        return None
    cached = mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    details = mapping(usage.get("completion_tokens_details"))
    read = _count(usage.get("prompt_tokens")) - _count(cached)
    had = None if cached is None else _count(cached)
    return PromptUsage(max(0, read), _count(details.get("reasoning_tokens")), had)


def _count(value: object) -> int:
    """Return `value` as a number of tokens; 0 if it is no number or not plausible."""
    plausible = isinstance(value, int | float) and 0 <= value <= MOST_COUNTED
    return int(cast("float", value)) if plausible else 0


# Server-sent events -------------------------------------------------------------------------------

LONGEST_LINE = 1_048_576
"""Maximum number of characters in a line, and in the data of an event. More characters are an
error."""
LONGEST_STREAM = 32 * LONGEST_LINE
"""Maximum number of bytes in a stream. More bytes are an error."""


class Event(NamedTuple):
    """A server-sent event with its name and its data. An event without data is never made."""

    name: str
    data: str


class EventStream:
    """A parser of one stream. Raises Garbled if the stream, a line or an event is too long."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._returned = False
        """Whether the last character was a carriage return. If a line feed follows, the two are one
        line end."""
        self._name, self._data, self._length = "", list[str](), 0
        """Name and data of the current event, and the number of characters in its data."""
        self._bytes = 0

    def feed(self, block: bytes) -> Iterator[Event]:
        """Add `block`, a piece of the stream. Yield the events that are complete now."""
        self._bytes += len(block)
        if self._bytes > LONGEST_STREAM:
            raise Garbled("a reply without an end")
        for line in self._lines(block):
            if line:
                self._take(line)
                continue
            event = Event(self._name, "\n".join(self._data))
            self._name, self._data, self._length = "", [], 0
            if event.data:
                yield event

    def _lines(self, block: bytes) -> Iterator[str]:
        text = self._decoder.decode(block)
        if self._returned and text:
            text = text.removeprefix("\n")
            self._returned = False
        self._returned = self._returned or text.endswith("\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            yield self._line + line
            self._line = ""
        self._line += rest
        if len(self._line) > LONGEST_LINE:
            raise Garbled("a line without an end")

    def _take(self, line: str) -> None:
        field, _, value = line.removeprefix("\ufeff").partition(":")
        if field in ("data", "error"):
            self._data.append(value.removeprefix(" "))
            self._length += len(value) + 1
        if field in ("event", "error"):
            self._name = "error" if field == "error" else value.strip()
        if self._length > LONGEST_LINE:
            raise Garbled("an event without an end")
