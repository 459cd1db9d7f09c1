"""Parse the stream of a server of chat completions: bytes in, pieces of a reply out.

The stream consists of server-sent events. The data of each event is a chunk: JSON with a little of
the reply. The data of the last event is `[DONE]`. Servers differ. Tool calls come whole or in
fragments ("deltas"). Token counts come in a separate chunk, with another one, or not at all. An
error may come instead of a chunk (`errors`). This module never waits, and does not know how the
reply is used.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from voiceloop.foreign import entries, mapping, parsed
from voiceloop.llm.remote.errors import Garbled, ReportedError, reported_error

LONGEST_LINE = 1_048_576
"""Maximum number of characters in a line, in the data of an event, and in all calls of a reply.
More characters are an error."""
LONGEST_STREAM = 32 * LONGEST_LINE
"""Maximum number of bytes in a stream. More bytes are an error."""
MOST_COUNTED = 1_000_000_000
"""Largest number of tokens that a server is believed to have counted. A larger number counts as
0."""
PIECE = 1000
"""Maximum number of characters in a piece of text. So a reply in one chunk still ends at its limit,
and is not worked on all at once."""
DEEPEST = 8
"""Maximum number of nested levels of content in which texts are read."""
_DELTA = 16
"""Number that is added to the number of characters of each delta. So `LONGEST_LINE` also limits the
number of deltas, even if they are empty."""
_DONE = "[DONE]"
_THOUGHT = re.compile(r"reasoning|thinking|thought", re.IGNORECASE)
"""A pattern of the keys that hold thoughts in a server's chunks, and of the types of content parts
that are thoughts."""
_FAILED = re.compile(r"abort|error|cancel|insufficient|time.?out|fail|overload", re.IGNORECASE)
"""A pattern of reasons for the end of a reply that mean that the rest of it is missing."""
_CUT = re.compile(r"length|max|trunc", re.IGNORECASE)
"""A pattern of reasons that mean that a limit has cut the reply off."""
_FILTERED = re.compile(r"filter|safety|sensitive|recitation|prohibited|block", re.IGNORECASE)
"""A pattern of reasons that mean that a filter has cut the reply off."""


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
class StreamedCall:
    """A complete tool call."""

    id: str
    """The server's id of the call; empty if the server gives none."""
    name: str
    arguments: str
    """Arguments as the model wrote them. They are JSON, unless the model made a mistake."""


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
        self._units = codecs.getincrementaldecoder("utf-16-le")("replace")
        """Joins halves of surrogate pairs, which may come in two chunks. A single half becomes
        U+FFFD."""
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
        if data.strip() != _DONE:
            yield from self._chunk(_parsed(name, data), name)
            return
        self.over = True
        if not self._begun:
            raise Garbled("the end of a reply that has not begun")
        if not self.finished:
            yield from self._ended()

    def _chunk(self, chunk: Mapping[str, Any], name: str) -> Iterator[Piece]:
        # Only one choice is requested. It has the index 0, or none.
        every = [mapping(one) for one in entries(chunk.get("choices")) if not self.finished]
        choice = next((one for one in every if one.get("index") in (None, 0, "0")), None)
        if choice is not None:
            self._begun = True
            yield from self._more(choice)
        if wrong := reported_error(chunk, name):
            raise wrong
        if choice is not None and choice.get("finish_reason"):
            reason = str(choice["finish_reason"])
            if _FAILED.search(reason):
                raise ReportedError(f"the reply was ended early ({reason})")
            yield from self._ended(bool(_CUT.search(reason)), bool(_FILTERED.search(reason)))
        if usage := usage_of(chunk):
            yield usage

    def _more(self, choice: Mapping[str, Any]) -> Iterator[Piece]:
        """Yield the pieces in `choice`, which is a part of a streamed reply, or a whole reply that
        is not streamed."""
        delta, whole = mapping(choice.get("delta")), mapping(choice.get("message"))
        given: list[Piece] = []
        said = delta or ({} if self._spoke else whole)
        for key, value in said.items():
            if _THOUGHT.match(key) and not given:  # some servers send the same thought twice
                given += map(Thought, _texts(value))
        given += [*self._said(said.get("content")), *self._said(said.get("refusal"))]
        if called := delta.get("tool_calls") or whole.get("tool_calls"):
            self._deltas.gather(called)
            given.append(Calling())
        elif called := said.get("function_call"):  # the older form, for a single call
            self._deltas.gather({"function": called})
            given.append(Calling())
        yield from given or ([] if choice.get("finish_reason") else [Thought()])

    def _said(self, content: object) -> Iterator[Piece]:
        """Yield the pieces of `content`, which is a text or a list of parts. A part may be a
        thought."""
        for part in [content] if isinstance(content, str) else _several(content):
            kind = str(mapping(part).get("type") or "text")
            if _THOUGHT.match(kind):
                yield Thought("".join(_texts(part)))
            elif kind in ("text", "output_text", "refusal"):
                for text in _texts(part):
                    self._spoke = True
                    text = self._units.decode(text.encode("utf-16-le", "surrogatepass"))
                    yield from (Text(text[at : at + PIECE]) for at in range(0, len(text), PIECE))

    def _ended(self, cut: bool = False, filtered: bool = False) -> Iterator[Piece]:
        self.finished = True
        if half := self._units.decode(b"", final=True):
            yield Text(half)
        yield from self._deltas.calls
        yield End(cut, filtered)


_CONTENT = ("text", "thinking", "reasoning", "content", "summary", "value", "refusal")
"""Keys of a part of content that may hold its text."""


def _texts(value: object, depth: int = 0) -> list[str]:
    """Return the texts in a part of content, nested up to `DEEPEST` levels."""
    if isinstance(value, str):
        return [value] if value else []
    found = list[str]()
    if depth < DEEPEST:
        for one in _several(value):
            inner = [one] if isinstance(one, str) else map(mapping(one).get, _CONTENT)
            found += [text for part in inner for text in _texts(part, depth + 1)]
    return found


def _several(value: object) -> list[Any]:
    """Return `value` if it is a list, `[value]` if it is an object, and otherwise an empty list."""
    return [value] if isinstance(value, dict) else entries(value)


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


def usage_of(answer: Mapping[str, Any]) -> PromptUsage | None:
    """Return the token counts in an answer or a chunk; None if it has none."""
    if not (usage := mapping(answer.get("usage"))):
        return None
    cached = mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    thought = mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")
    had = None if cached is None else _count(cached)
    read = _count(usage.get("prompt_tokens")) - (had or 0)
    return PromptUsage(max(0, read), _count(thought), had)


def _count(value: object) -> int:
    """Return `value` as a number of tokens; 0 if it is no number or not plausible."""
    plausible = isinstance(value, int | float) and 0 <= value <= MOST_COUNTED
    return int(cast("float", value)) if plausible else 0


class EventStream:
    """A parser of the server-sent events of one stream. Raises Garbled if the stream, a line or an
    event is too long."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = self._last = ""
        """The current line, and the last character of all. A line feed after a carriage return does
        not end another line."""
        self._name, self._data, self._length = "", list[str](), 0
        """Name and data of the current event, and the number of characters in its data."""
        self._bytes = 0

    def feed(self, block: bytes) -> Iterator[tuple[str, str]]:
        """Add `block`, a piece of the stream. Yield the name and the data of each event that is
        complete now and has data."""
        self._bytes += len(block)
        if self._bytes > LONGEST_STREAM:
            raise Garbled("a reply without an end")
        text = self._decoder.decode(block)
        ended, self._last = self._last, text[-1:] or self._last
        text = text.removeprefix("\n") if ended == "\r" else text
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        *lines, self._line = (self._line + text).split("\n")
        if len(self._line) > LONGEST_LINE:
            raise Garbled("a line without an end")
        for line in lines:
            if line:
                self._take(line)
                continue
            name, data = self._name, "\n".join(self._data)
            self._name, self._data, self._length = "", [], 0
            if data:
                yield name, data

    def _take(self, line: str) -> None:
        key, _, value = line.removeprefix("\ufeff").partition(":")
        if key in ("data", "error"):  # llama.cpp writes errors in lines of their own
            self._data.append(value.removeprefix(" "))
            self._length += len(value) + 1
        if key in ("event", "error"):
            self._name = "error" if key == "error" else value.strip()
        if self._length > LONGEST_LINE:
            raise Garbled("an event without an end")


# Tool calls ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OpenCall:
    index: object
    id: str = ""
    name: str = ""
    arguments: str = ""


class ToolCallDeltas:
    """The tool calls of one reply. Raises Garbled for data that is no tool call, and for calls that
    are too long."""

    def __init__(self) -> None:
        self._open: list[_OpenCall] = []
        self._length = 0

    @property
    def calls(self) -> list[StreamedCall]:
        """All calls, in the order in which they began."""
        return [StreamedCall(one.id, one.name, one.arguments) for one in self._open]

    def gather(self, deltas: object) -> None:
        """Add a delta, or a list of deltas."""
        for delta in entries(deltas) or [deltas]:
            if isinstance(delta, dict):
                self._take(mapping(cast(object, delta)))
            elif delta is not None:
                raise Garbled("calls of tools that are none")

    def _take(self, delta: Mapping[str, Any]) -> None:
        function = mapping(delta.get("function"))
        index, call_id = delta.get("index"), _text(delta.get("id"))
        name, arguments = _text(function.get("name")), function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        self._length += len(call_id) + len(name) + len(arguments) + _DELTA
        if self._length > LONGEST_LINE:
            raise Garbled("calls of tools without an end")
        known = reversed(self._open)
        call = next((one for one in known if index is None or one.index in (None, index)), None)
        if call is None or _begins_another(call, call_id, name, arguments):
            call = _OpenCall(index)
            self._open.append(call)
        call.id = call.id or call_id
        if name != call.name:
            call.name += name
        if _is_whole(arguments) and _is_whole(call.arguments):
            call.arguments = arguments  # the server has sent the whole call again
        else:
            call.arguments += arguments


def _begins_another(call: _OpenCall, call_id: str, name: str, arguments: str) -> bool:
    """Return whether a delta begins a new call, although it has the index of `call` or none. Some
    servers repeat the name in each delta or spread it over several, and some give all calls the
    same index."""
    if not name or not call.name:
        return False
    if name != call.name and (call.arguments or not call.id):
        return True
    if call_id and call.id:
        return call_id != call.id
    return bool(arguments) and _is_whole(call.arguments)


def _is_whole(arguments: str) -> bool:
    """Return whether `arguments` is a complete JSON object, or a JSON string."""
    if arguments[:1] not in ("{", '"') or arguments[-1:] not in ("}", '"'):
        return False
    try:
        parsed(arguments, strict=False)
    except ValueError:
        return False
    return True


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""
