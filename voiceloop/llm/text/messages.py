"""What was said and replied, as the messages that a server of chat completions is shown."""

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
    """A tool call in a reply."""

    call: ToolCall
    id: str
    """As the server calls it."""
    result: str | None = None
    """None until the tool has returned something."""


@dataclass(slots=True)
class Exchange:
    """What the user said and what was replied."""

    said: str
    reply: list[str | CallWithResult] = field(default_factory=list[str | CallWithResult])
    """Words, each with the space before it, and calls, as they came."""

    def messages(self) -> Iterator[Message]:
        """What the server is shown of it; a call that nothing came back of has never been."""
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
    """What the model said, with the calls at its end and what they returned."""
    if text or calls:
        message: Message = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [_told(called) for called in calls]
        yield message
    for called in calls:
        yield {"role": "tool", "tool_call_id": called.id, "content": called.result}


def _told(called: CallWithResult) -> Message:
    arguments = json.dumps(dict(called.call.arguments))
    function = {"name": called.call.name or "unknown", "arguments": arguments}
    return {"id": called.id, "type": "function", "function": function}


def without_system(messages: Sequence[Message]) -> list[Message]:
    """The same without a system prompt, whose text begins the user's first turn."""
    told = [one["content"] for one in messages if one["role"] == "system"]
    rest = [one for one in messages if one["role"] != "system"]
    if not told:
        return rest
    first = next((at for at, one in enumerate(rest) if one["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": "\n\n".join(told)}, *rest]
    text = "\n\n".join((*told, rest[first]["content"]))
    return [*rest[:first], {"role": "user", "content": text}, *rest[first + 1 :]]


def alternating(messages: Sequence[Message]) -> list[Message]:
    """The same with neighbouring turns of one role in one, and the user's first: what the model
    said before that is told with the system prompt."""
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
