"""What a chat-completion server streams, without the network: bytes in, pieces of a reply out.

The wire is server-sent events (`eventstream`) whose data are JSON: each a chunk with a little of
the reply, and `[DONE]` in the end. Servers differ: calls of tools come whole or in
crumbs (`toolcrumbs`), what was read is told in a chunk of its own or not at all, and something that
went wrong may come instead of a chunk (`complaints`). This module neither waits nor knows what
becomes of a reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from voiceloop.llm.remote.complaints import Complaint, Garbled, complained
from voiceloop.llm.remote.eventstream import EventStream
from voiceloop.llm.remote.toolcrumbs import StreamedCall, ToolCrumbs

MOST_COUNTED = 1_000_000_000
"""Nobody has read more tokens than that, whatever a server says."""
DEEPEST = 8
"""So deep within lists of its own a text may lie."""
_DONE = "[DONE]"
_THOUGHT = re.compile(r"reasoning|thinking|thought", re.IGNORECASE)
"""Begins the keys under which servers tell what a model thinks, and names the parts that do."""
_HALF = re.compile("[\ud800-\udbff]\\Z")


@dataclass(frozen=True, slots=True)
class Text:
    """A little more of what the model says."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A sign that the model is at work on the reply: a little of what it thinks, which may be
    empty."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Calling:
    """A sign that the model is writing a call."""


@dataclass(frozen=True, slots=True)
class PromptUsage:
    """What the server says it has read for the reply."""

    tokens: int
    """Without those that it remembered."""
    thought: int = 0
    """Tokens that the model has thought."""


@dataclass(frozen=True, slots=True)
class End:
    """The reply is complete."""

    cut: bool
    """It has had as many tokens as it may."""


Piece = Text | Thought | Calling | StreamedCall | PromptUsage | End


class ChatStream:
    """One reply. `feed` it blocks of bytes as they come until it is `over`, or there are no more,
    and no bytes in the end.

    Raises Garbled and Complaint, once what came before has been given.
    """

    def __init__(self) -> None:
        self.finished = False
        """The server has said that the reply is complete; what it has read may still come."""
        self.over = False
        """Nothing more comes."""
        self._events = EventStream()
        self._half = ""
        """The first half of a character, whose other half may come."""
        self._begun = self._spoke = False
        """Something of the reply has come; text has."""
        self._crumbs = ToolCrumbs()
        self._wrong: Garbled | Complaint | None = None
        """What has gone wrong behind the pieces that were given last."""

    def feed(self, block: bytes) -> list[Piece]:
        """What has become known with the next bytes, in order."""
        if self._wrong:
            raise self._wrong
        pieces: list[Piece] = []
        try:
            for name, data in self._events.feed(block):
                if not self.over:
                    pieces.extend(self._take(name, data))
        except (Garbled, Complaint) as error:
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
            yield from self._ended(cut=False)

    def _chunk(self, chunk: Mapping[str, Any], name: str) -> Iterator[Piece]:
        choice = _choice(chunk.get("choices"))
        if choice is not None and not self.finished:
            self._begun = True
            yield from self._more(choice)
        if wrong := complained(chunk, name):
            raise wrong
        if choice is not None and not self.finished and (reason := choice.get("finish_reason")):
            yield from self._ended(cut=reason in ("length", "max_tokens", "model_length"))
        if usage := _mapping(chunk.get("usage")):
            cached = _mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
            details = _mapping(usage.get("completion_tokens_details"))
            read = _count(usage.get("prompt_tokens")) - _count(cached)
            yield PromptUsage(max(0, read), _count(details.get("reasoning_tokens")))

    def _more(self, choice: Mapping[str, Any]) -> Iterator[Piece]:
        """A little of the reply; the whole of it where it does not come in little pieces."""
        delta, whole = _mapping(choice.get("delta")), _mapping(choice.get("message"))
        given: list[Piece] = []
        if said := delta or ({} if self._spoke else whole):
            for key, value in said.items():
                if _THOUGHT.match(key) and not given:  # some servers tell the same thought twice
                    given += map(Thought, _texts(value))
            for key in ("content", "refusal"):
                given += self._said(said.get(key))
        if told := delta.get("tool_calls") or whole.get("tool_calls"):
            self._crumbs.gather(told)
            given.append(Calling())
        if told := delta.get("function_call"):  # as calls were told before there were several
            self._crumbs.gather({"function": told})
            given.append(Calling())
        yield from given or ([] if choice.get("finish_reason") else [Thought()])

    def _said(self, content: object) -> Iterator[Piece]:
        """Content as a text, or in parts, some of which may be thoughts."""
        if isinstance(content, str):
            if content:
                yield from self._whole(content)
            return
        for part in _listed(content):
            kind = _mapping(part).get("type")
            if isinstance(kind, str) and _THOUGHT.match(kind):
                yield Thought("".join(_texts(part)))
            elif kind in (None, "text", "output_text", "refusal"):
                for text in _texts(part):
                    yield from self._whole(text)

    def _whole(self, text: str) -> Iterator[Piece]:
        """`text` without halves of characters, which JSON can spell and nothing can say: where it
        ends in the first half of one, that waits for the other."""
        text = self._half + text
        found = _HALF.search(text)
        self._half = found[0] if found else ""
        text = text.removesuffix(self._half)
        if text:
            self._spoke = True
            yield Text(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _ended(self, cut: bool) -> Iterator[Piece]:
        self.finished = True
        if self._half:
            yield Text("\ufffd")
        yield from self._crumbs.calls()
        yield End(cut)


def _choice(choices: object) -> Mapping[str, Any] | None:
    """The one that was asked for; a server may not number it."""
    every = map(_mapping, cast("list[object]", choices) if isinstance(choices, list) else [])
    return next((one for one in every if one.get("index") in (None, 0, "0")), None)


def _texts(value: object, depth: int = 0) -> list[str]:
    """The texts that a part of content consists of, however they are wrapped."""
    if isinstance(value, str):
        return [value] if value else []
    found = list[str]()
    if depth < DEEPEST:
        for one in _listed(value):
            if isinstance(one, str):
                found += _texts(one)
            for key in ("text", "thinking", "reasoning", "content", "summary", "value", "refusal"):
                found += _texts(_mapping(one).get(key), depth + 1)
    return found


def _parsed(name: str, data: str) -> Mapping[str, Any]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        if name == "error":
            raise Complaint(" ".join(data.split())) from None
        raise Garbled("data that is no JSON") from None
    if name == "error" and not isinstance(chunk, dict):
        return {"error": chunk}
    if not isinstance(chunk, dict):
        raise Garbled("a chunk that is no object")
    return cast("Mapping[str, Any]", chunk)


def _listed(value: object) -> list[object]:
    """What a list holds, or the one object that stands where a list might."""
    if isinstance(value, dict):
        return [cast("object", value)]
    return cast("list[object]", value) if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _count(value: object) -> int:
    """A number of tokens; 0 where it is none that anybody could have read."""
    told = isinstance(value, int | float) and 0 <= value <= MOST_COUNTED
    return int(cast("float", value)) if told else 0
