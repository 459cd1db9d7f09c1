"""A reply's text in parts: what is spoken, what is called, and what nobody is to hear.

Text leaves as soon as it is certain; what may turn out to be the beginning of a mark waits.
Thoughts are never spoken, nor is anything within them called. A tag that closes a thought whose
beginning never came is silent, but what was spoken before it stays. JSON is a call if its keys say
so, and else text like any other: what can be said of that, whoever speaks knows. This module knows
neither tokens nor models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from voiceloop.brackets import JSON, JSON_MAYBE, json_end
from voiceloop.llm.text.calls import CALLS, CUT_OFF, NO_JSON, ParsedCall, is_call, read

THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "<|channel>": "<channel|>",
}
"""What begins a thought and what ends it. Any of the ends will do: models mix them up."""
_HEADERS = ("<|channel|>", "<|start|>")
_MESSAGE = "<|message|>"
_MESSAGE_ENDS = ("<|end|>", "<|return|>", "<|call|>")
"""Marks of replies that consist of messages, each on a channel: that on `final` is spoken."""
_RESULTS = {"<tool_response>": "</tool_response>", "[TOOL_RESULTS]": "[/TOOL_RESULTS]"}
"""What models make up that a tool has returned."""
_ALONE = (*THOUGHTS.values(), *filter(None, CALLS.values()), *_RESULTS.values(), *_MESSAGE_ENDS)
"""Marks that say nothing where they stand alone."""
MARKS = frozenset((*THOUGHTS, *CALLS, *_RESULTS, *_HEADERS, _MESSAGE, *_ALONE))
"""All marks that are known for any model."""
_EVIDENT = 4
"""So many characters of a mark at the end of a reply are one that was broken off."""


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """The next piece of a reply; joined, all of them are its text up to a stop string."""

    text: str
    spoken: bool = False
    calls: tuple[ParsedCall, ...] = ()
    """What `text` calls."""


_Kind = Literal["json", "call", "silence", "header", "message"]


class Parts:
    """Takes one reply apart. `push` its text, then `finish` it once."""

    def __init__(
        self, *, thinking: bool = False, stop: Sequence[str] = (), call: tuple[str, str] = ("", "")
    ) -> None:
        """`thinking` says that the reply begins in a thought; it ends before the first of the
        `stop` strings to be complete, none of which may be empty. `call` is what begins and ends a
        call by the model's own template, if that has marks of its own."""
        self.stopped = False
        """True once a stop string has come."""
        begin, end = call
        self._stops = tuple(stop)
        self._calls = {**CALLS, **({begin: end} if begin else {})}
        self._marks = tuple({*MARKS, *self._stops, *filter(None, call)})
        self._longest = max(map(len, self._marks))
        self._first = frozenset(mark[0] for mark in self._marks) | {"{"}
        self._text = ""
        """What is not certain yet; it begins with the mark that began the span we are in."""
        self._kind: _Kind | None = "silence" if thinking else None
        """The span that we are in."""
        self._ends: tuple[str, ...] = tuple(THOUGHTS.values()) if thinking else ()
        """What ends it."""
        self._header = ""
        """What has come of a message's header."""
        self._listed = False
        """The last part was a call that may have another behind a semicolon."""

    @property
    def speaking(self) -> bool:
        """The next text will be spoken, unless it begins with a mark."""
        return self._kind is None

    def push(self, text: str) -> list[ReplyPart]:
        """What has become certain once `text` has followed, in order."""
        self._text += text
        return [part for part in self._settle() if part.text]

    def finish(self) -> list[ReplyPart]:
        """What is left at the end of the reply."""
        left, self._text = self._text, ""
        if not left:
            return []
        match self._kind:
            case None:
                return [ReplyPart(left, spoken=len(left) < _EVIDENT or not self._broken_off(left))]
            case "call":
                return self._last_calls(left)
            case "json":
                if is_call(left):
                    return [ReplyPart(left, calls=(ParsedCall("", {}, CUT_OFF),))]
                return self._plain(left)
            case "message":
                return [self._message(left)]
            case "silence" | "header":
                return [ReplyPart(left)]

    def _broken_off(self, left: str) -> bool:
        return any(mark.startswith(left) for mark in self._marks if mark not in self._stops)

    def _last_calls(self, left: str) -> list[ReplyPart]:
        calls, rest = read(self._body(left))
        if not self._ends and rest[:1].isalpha() and not any(call.problem for call in calls):
            # Nothing marks the end of these calls, but that they are over.
            return [
                ReplyPart(left.removesuffix(rest), calls=tuple(calls)),
                ReplyPart(rest, spoken=True),
            ]
        cut = [ParsedCall("", {}, CUT_OFF) if call.problem == NO_JSON else call for call in calls]
        return [ReplyPart(left, calls=tuple(cut))]

    def _settle(self) -> Iterator[ReplyPart]:
        while self._text and not self.stopped:
            if self._kind == "json":
                parts = self._data()
            else:
                part = self._speak() if self._kind is None else self._span()
                parts = [] if part is None else [part]
            if not parts:
                return
            self._text = self._text[sum(len(part.text) for part in parts) :]
            yield from parts

    def _speak(self) -> ReplyPart | None:
        """The text up to the next mark, which begins a span or is silent itself."""
        text = self._text
        if self._listed:
            more = text.lstrip()
            if not more:
                return None
            self._listed = False
            if more[0] == ";":  # between two calls that are JSON alone
                return ReplyPart(text[: text.index(";") + 1])
        if self._first.isdisjoint(text):
            return ReplyPart(text, spoken=True)
        # The first to be complete counts, however the text came in pieces.
        found = [(at + len(mark), at, mark) for mark in self._marks if (at := text.find(mark)) >= 0]
        if data := JSON.search(text):
            found.append((data.end(), data.start(), ""))
        if not found:
            rest = len(text) - self._held()
            return ReplyPart(text[:rest], spoken=True) if rest else None
        _, at, mark = min(found)
        if mark in self._stops:
            self.stopped = True
        elif at == 0:
            return ReplyPart("" if self._opens(mark) else mark)
        return ReplyPart(text[:at], spoken=True)

    def _opens(self, mark: str) -> bool:
        """Whether a span begins with `mark`, which stays at its head; "" is the mark of JSON."""
        if mark in self._calls:
            self._begin("call", self._calls[mark])
        elif mark in THOUGHTS:
            self._begin("silence", *THOUGHTS.values())
        elif mark in _RESULTS:
            self._begin("silence", _RESULTS[mark])
        elif mark in _HEADERS:
            self._begin("header", _MESSAGE)
            self._header = ""
        elif not mark:
            self._kind = "json"
        return self._kind is not None

    def _begin(self, kind: _Kind, *ends: str) -> None:
        self._kind, self._ends = kind, tuple(filter(None, ends))

    def _data(self) -> list[ReplyPart]:
        end = json_end(self._text, 0)
        if end is None:
            return []
        self._kind = None
        text = self._text[:end]
        self._listed = is_call(text)
        return [ReplyPart(text, calls=tuple(read(text)[0]))] if self._listed else self._plain(text)

    def _plain(self, text: str) -> list[ReplyPart]:
        """JSON that calls nothing: said as it stands, but for marks that it holds."""
        marks = sorted(self._marks, key=len, reverse=True)
        pieces = re.split(f"({'|'.join(map(re.escape, marks))})", text)
        return [ReplyPart(piece, spoken=k % 2 == 0) for k, piece in enumerate(pieces) if piece]

    def _span(self) -> ReplyPart | None:
        """The span up to its end; what is silent leaves before that."""
        text, kind = self._text, self._kind
        found = [(at, end) for end in self._ends if (at := text.find(end)) >= 0]
        if not found:
            if kind in ("call", "message"):
                return None
            silent = text[: len(text) - self._held(self._ends)]
            self._header += silent if kind == "header" else ""
            return ReplyPart(silent) if silent else None
        at, end = min(found)
        self._kind = None
        if kind == "call":
            text = text[: at + len(end)]
            return ReplyPart(text, calls=tuple(read(self._body(text))[0]))
        if kind == "message":  # its end belongs to no message
            return self._message(text[:at])
        if kind == "header":
            self._header += text[:at]
            if not self._header.rpartition("<|channel|>")[2].strip().startswith("final"):
                self._begin("message", *_MESSAGE_ENDS, *_HEADERS)
        return ReplyPart(text[: at + len(end)])

    def _message(self, text: str) -> ReplyPart:
        """A message that is not spoken: a call where its header says to which function it goes."""
        _, addressed, name = self._header.partition("to=functions.")
        if not addressed:
            return ReplyPart(text)
        calls, _ = read((name.split() or [""])[0].partition("<")[0] + text)
        return ReplyPart(text, calls=tuple(calls))

    def _body(self, text: str) -> str:
        """What stands between the marks of a call; a function's name stands in its mark."""
        mark = next(mark for mark in self._calls if text.startswith(mark))
        if mark == "<function=":
            return text
        return text.removeprefix(mark).removesuffix(self._calls[mark] or "\0")

    def _held(self, marks: Sequence[str] = ()) -> int:
        """Length of the longest end of the text with which a mark may begin."""
        text = self._text
        data = None if marks else JSON_MAYBE.search(text)
        least = len(text) - data.start() if data else 0
        for n in range(min(len(text), self._longest), least, -1):
            if any(mark.startswith(text[-n:]) for mark in marks or self._marks):
                return n
        return least
