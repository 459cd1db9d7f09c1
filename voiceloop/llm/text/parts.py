"""Split a reply's text into parts: speech, tool calls, and silent text.

Text is returned as soon as it is certain what it is. Text that may be the beginning of a mark
waits. Thoughts are never spoken, and calls inside them are ignored. If a thought has only an end
mark, that mark is silent, but the text before it has already been spoken. JSON with the keys of a
call is a call, also within a code fence. Other JSON is text to speak. This module knows neither
tokens nor models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from voiceloop.foreign import JSON, JSON_MAYBE, OpenJson
from voiceloop.llm.text.calls import CALLS, CUT_OFF, NO_JSON, QUOTE, ParsedCall, is_call, read

THOUGHTS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
    "<|channel>": "<channel|>",
    "<seed:think>": "</seed:think>",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
}
"""Marks that begin a thought, each mapped to its end mark. Any end mark ends any thought, because
models mix them up."""
_HEADERS = ("<|channel|>", "<|start|>")
_MESSAGE = "<|message|>"
_MESSAGE_ENDS = ("<|end|>", "<|return|>", "<|call|>")
"""Marks of replies that consist of messages on channels: `_HEADERS` begin a header, `_MESSAGE`
follows the header, and `_MESSAGE_ENDS` follow the message. Only messages on channel `final` are
spoken."""
RESULTS = {
    "<tool_response>": "</tool_response>",
    "<|tool_response>": "<tool_response|>",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
}
"""Marks that begin a tool result, each mapped to its end mark. A result in a reply was made up by
the model, so it is silent."""
_RESPONSE = ("<|START_RESPONSE|>", "<|END_RESPONSE|>")
"""Marks around what is spoken."""
_ENDS = (*THOUGHTS.values(), *filter(None, CALLS.values()), *RESULTS.values(), *_MESSAGE_ENDS)
_ALONE = (*_ENDS, *_RESPONSE, QUOTE)
"""All end marks, `_RESPONSE`, and a quotation mark. They are silent even if no beginning mark is
before them."""
MARKS = frozenset((*THOUGHTS, *CALLS, *RESULTS, *_HEADERS, _MESSAGE, *_ALONE))
"""All marks, of any model."""
_AT_ONCE = 1000
"""Number of characters that are parsed at once."""
_FENCE = "```"
_FENCED = re.compile(r"```\w*\s*$")
"""Matches the beginning of a code fence at the end of a text. It is used on the text before
JSON."""
_FENCED_MAYBE = re.compile(r"(?:`{1,2}|```\w*\s*(?:\[\s*)?(?:\{\s*)?)$")
"""Matches the end of a text that may become the beginning of a code fence with JSON when more text
follows."""
_EVIDENT = 4
"""Minimum length of an incomplete mark at the end of a reply, in characters, from which on it is
silent. A shorter one is spoken."""


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """A part of a reply. All parts joined are the reply's text up to a stop string."""

    text: str
    spoken: bool = False
    calls: tuple[ParsedCall, ...] = ()
    """Calls that `text` contains."""


_Kind = Literal["json", "call", "silence", "header", "message"]


class Parts:
    """A parser that splits one reply. Call `push` with each piece of the reply's text, then
    `finish` once."""

    def __init__(
        self, *, thinking: bool = False, stop: Sequence[str] = (), call: tuple[str, str] = ("", "")
    ) -> None:
        """`thinking` says that the reply begins inside a thought. The reply ends before the first
        of the strings in `stop`. These may not be empty. `call` holds the marks that begin and end
        a call in the model's chat template, or empty strings."""
        self.stopped = False
        """Whether a stop string has come."""
        begin, end = call
        self._stops = tuple(stop)
        self._calls = {**CALLS, **({begin: end} if begin else {})}
        self._marks = tuple({*MARKS, *self._stops, *filter(None, call)})
        self._first = frozenset(mark[0] for mark in self._marks) | {"{", "`"}
        self._text = ""
        """Text that is not certain yet. A call includes its opening mark."""
        self._kind: _Kind | None = "silence" if thinking else None
        """Kind of the current span: a part of the text that begins with a mark or is JSON. None
        outside of spans."""
        self._ends: tuple[str, ...] = tuple(THOUGHTS.values()) if thinking else ()
        """Marks that end the current span."""
        self._json = OpenJson(0)
        """JSON of the current span of this kind. A code fence may stand before it."""
        self._header = ""
        """Header of the current message so far."""
        self._listed = False
        """Whether the last part was a call in JSON. A semicolon and another call may follow it."""
        self._fenced = False
        """Whether the last part was a call in JSON within a code fence. The end of the fence may
        follow it."""

    @property
    def speaking(self) -> bool:
        """Whether the next text is spoken, unless it begins with a mark."""
        return self._kind is None

    def push(self, text: str) -> list[ReplyPart]:
        """Add `text` and return the parts that have become certain, in order."""
        parts = list[ReplyPart]()
        for at in range(0, len(text), _AT_ONCE):  # what each mark costs is linear in what is left
            self._text += text[at : at + _AT_ONCE]
            parts += [part for part in self._settle() if part.text]
        return parts

    def finish(self) -> list[ReplyPart]:
        """Return the remaining parts at the end of the reply."""
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
            # These calls have no end mark, so the text after them is spoken.
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
        """Return the next part outside of spans: the text before the next mark, or a mark without a
        span. None if nothing is certain yet.

        If the text begins with a mark that begins a span, begin the span and return an empty part.
        """
        text = self._text
        if self._listed:
            more = text.lstrip()
            if not more:
                return None
            if self._fenced and len(more) < len(_FENCE) and _FENCE.startswith(more):
                return None
            self._listed, fenced, self._fenced = False, self._fenced, False
            if more[0] == ";":  # separates two calls without marks
                return ReplyPart(text[: text.index(";") + 1])
            if fenced and more.startswith(_FENCE):
                return ReplyPart(text[: text.index(_FENCE) + len(_FENCE)])
        if self._first.isdisjoint(text):
            return ReplyPart(text, spoken=True)
        # The mark that ends first counts, so that it does not matter how the text was cut.
        found = [(at + len(mark), at, mark) for mark in self._marks if (at := text.find(mark)) >= 0]
        if data := JSON.search(text):
            fence = _FENCED.search(text, 0, data.start())
            found.append((data.end(), fence.start() if fence else data.start(), ""))
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
        """Begin the span that `mark` begins. Return False if it begins none. An empty `mark` stands
        for JSON."""
        if mark in self._calls:
            self._begin("call", self._calls[mark])
        elif mark in THOUGHTS:
            self._begin("silence", *THOUGHTS.values())
        elif mark in RESULTS:
            self._begin("silence", RESULTS[mark])
        elif mark in _HEADERS:
            self._begin("header", _MESSAGE)
            self._header = ""
        elif not mark:
            begin = JSON.search(self._text)
            self._kind, self._json = "json", OpenJson(begin.start() if begin else 0)
        return self._kind is not None

    def _begin(self, kind: _Kind, *ends: str) -> None:
        self._kind, self._ends = kind, tuple(filter(None, ends))

    def _data(self) -> list[ReplyPart]:
        start, end = self._json.start, self._json.end(self._text)
        if end is None:
            return []
        self._kind = None
        text, data = self._text[:end], self._text[start:end]
        self._listed = is_call(data)
        self._fenced = self._listed and start > 0
        return [ReplyPart(text, calls=tuple(read(data)[0]))] if self._listed else self._plain(text)

    def _plain(self, text: str) -> list[ReplyPart]:
        """Return the parts of JSON that is not a call: its text is spoken, and marks inside it are
        silent."""
        marks = sorted(self._marks, key=len, reverse=True)
        pieces = re.split(f"({'|'.join(map(re.escape, marks))})", text)
        return [ReplyPart(piece, spoken=k % 2 == 0) for k, piece in enumerate(pieces) if piece]

    def _span(self) -> ReplyPart | None:
        """Return the current span up to its end, or the silent text of the span so far. None if
        nothing is certain yet."""
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
            body = self._body(text)
            return ReplyPart(text, calls=tuple(read(body)[0]) if body.strip() else ())
        if kind == "message":  # the end mark is no part of the message
            return self._message(text[:at])
        if kind == "header":
            self._header += text[:at]
            if not self._header.rpartition("<|channel|>")[2].strip().startswith("final"):
                self._begin("message", *_MESSAGE_ENDS, *_HEADERS)
        return ReplyPart(text[: at + len(end)])

    def _message(self, text: str) -> ReplyPart:
        """Return a message on a channel that is not spoken. The message is a call if its header
        addresses a function."""
        _, addressed, name = self._header.partition("to=functions.")
        if not addressed:
            return ReplyPart(text)
        calls, _ = read((name.split() or [""])[0].partition("<")[0] + text)
        return ReplyPart(text, calls=tuple(calls))

    def _body(self, text: str) -> str:
        """Return the text of a call without its marks. The mark `<function` stays, because `read`
        needs it."""
        mark = next(mark for mark in self._calls if text.startswith(mark))
        if mark.startswith("<function"):
            return text
        return text.removeprefix(mark).removesuffix(self._calls[mark] or "\0")

    def _held(self, marks: Sequence[str] = ()) -> int:
        """Return how many characters at the end of the text may be the beginning of one of `marks`.
        Without `marks`, all marks and JSON are considered."""
        text = self._text
        data = None if marks else JSON_MAYBE.search(text)
        if not marks and (fence := _FENCED_MAYBE.search(text)):
            data = fence
        least = len(text) - data.start() if data else 0
        longest = max(map(len, marks or self._marks))
        for n in range(min(len(text), longest), least, -1):
            if any(mark.startswith(text[-n:]) for mark in marks or self._marks):
                return n
        return least
