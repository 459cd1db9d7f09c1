"""Server-sent events, without the network: bytes in, names and data out.

Bytes may be cut anywhere. Of all fields two are of interest, and `error`, which some servers send
where `data` would stand. This module does not know what the data are.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import NamedTuple

from voiceloop.llm.remote.complaints import Garbled

LONGEST_LINE = 1_048_576
"""Bytes without the end of a line, or characters of an event without its end, after which a server
is not believed any more."""
LONGEST_STREAM = 32 * LONGEST_LINE
"""Bytes of a whole stream after which it is not either."""


class Event(NamedTuple):
    """An event with data."""

    name: str
    data: str


class EventStream:
    """One stream. Raises Garbled."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._returned = False
        """The last character was a carriage return, with which a line feed may belong."""
        self._name, self._data, self._length = "", list[str](), 0
        """An event so far, and how many characters its data are."""
        self._bytes = 0

    def feed(self, block: bytes) -> Iterator[Event]:
        """The events that are complete with the next bytes."""
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
