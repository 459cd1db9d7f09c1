"""Parse server-sent events: bytes in, names and data out.

The bytes may be cut anywhere. Only the fields `event`, `data` and `error` are read; some servers
send `error` instead of `data`. This module does not interpret the data.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import NamedTuple

from voiceloop.llm.remote.complaints import Garbled

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
