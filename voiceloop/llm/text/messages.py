"""Write a conversation as messages, in the form that chat-completion servers take."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from voiceloop.llm.text.wording import BEGAN
from voiceloop.types import ToolCall

Message = dict[str, Any]


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
