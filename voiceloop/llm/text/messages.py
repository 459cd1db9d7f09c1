"""Write a conversation as messages, in the form that chat-completion servers take.

The texts that voiceloop itself writes into a conversation are here too, for every engine, and
bounds that tell that a text cannot fit into a context before it is tokenised, which takes long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from voiceloop.skills.phrases import phrases_of
from voiceloop.types import Tool, ToolCall

Message = dict[str, Any]
TOKEN_CHARS = 12
"""Number of characters that no text exceeds for each of its tokens on average."""

SPOKEN = (
    "You are a helpful AI assistant who speaks with the user. Answer in one to three short "
    "sentences of plain words, with no lists, no markdown and no emoji."
)
"""The default system prompt. Without it, models write for readers, not for listeners."""
OWN_CALL = "voiceloop_"
"""The beginning of the name of each call that stands in the history for something that a rule
did."""
OKAY = "Okay."
"""The words of a reply in the history that stands for something that a rule did. They claim nothing
that the model could copy."""
BEGAN = "You have begun the conversation with these words:"
"""The text that comes before the model's first words in the system prompt. It is used if the first
message must be the user's, but the model spoke first."""


@dataclass(slots=True)
class CallWithResult:
    """A tool call in a reply, with its result."""

    call: ToolCall
    id: str
    """Id of the call in messages to the server."""
    result: str | None = None
    """Result of the tool; None until it has returned."""


@dataclass(slots=True)
class Exchange:
    """The user's words in one turn, and the reply to them."""

    said: str
    reply: list[str | CallWithResult] = field(default_factory=list[str | CallWithResult])
    """The reply's words, each with the space before it, and its calls, in order."""

    def messages(self) -> Iterator[Message]:
        """Yield the exchange as messages. Calls without a result are left out."""
        if self.said:
            yield {"role": "user", "content": self.said}
        text, calls = "", list[CallWithResult]()
        for part in (*self.reply, None):
            if isinstance(part, CallWithResult):
                calls += [part] if part.result is not None else []
                continue
            if part is None or calls:
                yield from _answer(text, calls)
                text, calls = "", list[CallWithResult]()
            text += part or ""


def _answer(text: str, calls: Sequence[CallWithResult]) -> Iterator[Message]:
    """Yield the model's message with `text` and `calls`, then a message for each result."""
    if text or calls:
        message: Message = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [_tool_call(called) for called in calls]
        yield message
    for called in calls:
        yield {"role": "tool", "tool_call_id": called.id, "content": called.result}


def _tool_call(called: CallWithResult) -> Message:
    arguments = json.dumps(dict(called.call.arguments))
    function = {"name": called.call.name or "unknown", "arguments": arguments}
    return {"id": called.id, "type": "function", "function": function}


def without_system(messages: Sequence[Message]) -> list[Message]:
    """Move all system prompts to the beginning of the first user message. If there is no user
    message, add one at the beginning."""
    prompts = [one["content"] for one in messages if one["role"] == "system"]
    rest = [one for one in messages if one["role"] != "system"]
    if not prompts:
        return rest
    first = next((at for at, one in enumerate(rest) if one["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": "\n\n".join(prompts)}, *rest]
    text = "\n\n".join((*prompts, rest[first]["content"]))
    return [*rest[:first], {"role": "user", "content": text}, *rest[first + 1 :]]


def alternating(messages: Sequence[Message]) -> list[Message]:
    """Merge successive messages of the same role. Tool results are not merged, and nothing is
    merged into a message with tool calls.

    Replies before the user's first message move into the system prompt. A reply with tool calls,
    and all after it, stay where they are.
    """
    system = [one for one in messages if one["role"] == "system"]
    rest = [one for one in messages if one["role"] != "system"]
    while rest and rest[0]["role"] == "assistant" and "tool_calls" not in rest[0]:
        system.append({"role": "system", "content": f"{BEGAN} {rest.pop(0)['content']}"})
    merged: list[Message] = []
    for one in (*system, *rest):
        before = merged[-1] if merged else {}
        if before.get("role") != one["role"] or one["role"] == "tool" or "tool_calls" in before:
            merged.append(one)
        else:
            text = "\n\n".join(filter(None, (before["content"], one["content"])))
            merged[-1] = one | {"content": text}
    return merged


# What voiceloop writes ----------------------------------------------------------------------------


# strftime would write the names in the language of the program's locale.
def told(system: str, now: datetime, place: str) -> str:
    """Return the system prompt `system` with the date and hour at which a conversation begins, and
    the user's place.

    The words for date and hour stay true during the conversation, so the prompt never changes. An
    empty `place` is left out. An empty `system` stays empty.
    """
    if not system:
        return ""
    english = phrases_of("en")
    date = f"{english.weekday(now.weekday())}, {now.day} {english.month(now.month)} {now.year}"
    hour = (now + timedelta(minutes=30)).hour
    began = f"The conversation began on {date}, {_part(hour)}, at about {hour % 12 or 12} o'clock."
    return f"{system} {began} The user is in {place}." if place else f"{system} {began}"


def _part(hour: int) -> str:
    if 5 <= hour < 12:
        return "in the morning"
    if 12 <= hour < 18:
        return "in the afternoon"
    return "in the evening" if 18 <= hour < 23 else "at night"


# What cannot fit ----------------------------------------------------------------------------------


def least(*texts: str) -> int:
    """Return a lower bound of the number of tokens of `texts`."""
    return sum(map(len, texts)) // TOKEN_CHARS


def least_of_opening(system: str, tools: Sequence[Tool]) -> int:
    """Return a lower bound of the number of tokens of a system prompt with tools."""
    described = [
        f"{one.name}{one.description}{json.dumps(one.parameters, ensure_ascii=False, default=dict)}"
        for one in tools
    ]
    return least(system, *described)
