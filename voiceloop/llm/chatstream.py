"""What a chat-completion server streams, without the network: bytes in, pieces of a reply out.

The wire is server-sent events whose data are JSON: each a chunk with a little of the reply, and
`[DONE]` in the end. Bytes may be cut anywhere. Servers differ: calls of tools come whole or in
crumbs, what was read is told in a chunk of its own or not at all, and an error may come instead of
a chunk. This module neither waits nor knows what becomes of a reply.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

LONGEST_LINE = 1_048_576
"""Bytes without the end of a line after which a server is not believed any more."""
_DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Text:
    """A little more of what the model says."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, whole."""

    id: str
    """As the server calls it; empty where it does not."""
    name: str
    arguments: str
    """As the model wrote them: JSON, if it wrote well."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the server says it has read for the reply."""

    tokens: int
    """Without those that it remembered."""


Piece = Text | Call | Read


class Garbled(ValueError):
    """What came is no stream of chat completions."""


class Complaint(Exception):
    """The server says in the stream that something went wrong."""


class ChatStream:
    """One reply. `feed` it blocks of bytes as they come until it is `over`, or there are no more.

    Raises Garbled and Complaint.
    """

    def __init__(self) -> None:
        self.finished = False
        """The server has said that the reply is complete; what it has read may still come."""
        self.over = False
        """Nothing more comes."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._returned = False
        """The last character was a carriage return, with which a line feed may belong."""
        self._data: list[str] = []
        self._calls: list[_Call] = []

    def feed(self, block: bytes) -> list[Piece]:
        """What has become known with the next bytes, in order."""
        return [piece for line in self._lines(block) for piece in self._take(line)]

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

    def _take(self, line: str) -> Iterator[Piece]:
        """A line; an empty one ends an event. All fields but the data are of no interest."""
        if self.over:
            return
        field, _, value = line.removeprefix("\ufeff").partition(":")
        if line:
            if field == "data":
                self._data.append(value.removeprefix(" "))
            return
        data, self._data = "\n".join(self._data), []
        if data.strip() == _DONE:
            self.finished = self.over = True
            yield from self._called()
        elif data:
            yield from self._chunk(_parsed(data))

    def _chunk(self, chunk: Mapping[str, Any]) -> Iterator[Piece]:
        if error := chunk.get("error"):
            raise Complaint(complaint({"error": error}))
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices and not self.finished:
            choice = _mapping(cast("list[Any]", choices)[0])
            delta = _mapping(choice.get("delta"))
            if isinstance(text := delta.get("content"), str) and text:
                yield Text(_whole(text))
            for crumb in cast("list[Any]", delta.get("tool_calls") or []):
                self._gather(_mapping(crumb))
            if choice.get("finish_reason"):
                self.finished = True
                yield from self._called()
        if usage := _mapping(chunk.get("usage")):
            cached = _mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
            yield Read(max(0, _count(usage.get("prompt_tokens")) - _count(cached)))

    def _gather(self, crumb: Mapping[str, Any]) -> None:
        """Add to a call that has begun, or begin one: a name at an index that has one is another,
        since some servers give all of them the index 0."""
        function = _mapping(crumb.get("function"))
        index, name = crumb.get("index", 0), function.get("name") or ""
        same = next((call for call in reversed(self._calls) if call.index == index), None)
        if same is None or (name and same.name):
            same = _Call(index)
            self._calls.append(same)
        same.id = same.id or str(crumb.get("id") or "")
        same.name = same.name or str(name)
        arguments = function.get("arguments") or ""
        same.arguments += arguments if isinstance(arguments, str) else json.dumps(arguments)

    def _called(self) -> Iterator[Call]:
        calls, self._calls = self._calls, []
        for call in calls:
            yield Call(call.id, call.name, call.arguments)


@dataclass(slots=True)
class _Call:
    index: object
    id: str = ""
    name: str = ""
    arguments: str = ""


def complaint(body: object) -> str:
    """What the answer of a server, read from JSON, says went wrong; empty where it says nothing."""
    if isinstance(body, list) and body:
        body = cast("list[object]", body)[0]
    if isinstance(body, str):
        return " ".join(body.split())
    if not isinstance(body, dict):
        return ""
    told = cast("dict[str, object]", body)
    found = (complaint(told[key]) for key in ("error", "message", "msg", "detail") if key in told)
    return next(filter(None, found), "")


def _parsed(data: str) -> Mapping[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        raise Garbled("data that is no JSON") from None
    if not isinstance(chunk, dict):
        raise Garbled("a chunk that is no object")
    return cast("Mapping[str, Any]", chunk)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _whole(text: str) -> str:
    """`text` without halves of characters, which JSON can spell and nothing can say."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
