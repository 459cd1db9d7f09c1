"""What was said and replied, as the messages that a server of chat completions is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from voiceloop.types import ToolCall

Message = dict[str, Any]


@dataclass(slots=True)
class Called:
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
    reply: list[str | Called] = field(default_factory=list[str | Called])
    """Words, each with the space before it, and calls, as they came."""

    def messages(self) -> Iterator[Message]:
        """What the server is shown of it; a call that nothing came back of has never been."""
        if self.said:
            yield {"role": "user", "content": self.said}
        text, calls = "", list[Called]()
        for part in (*self.reply, None):
            if isinstance(part, Called):
                calls += [part] if part.result is not None else []
                continue
            if part is None or calls:
                yield from _answer(text, calls)
                text, calls = "", list[Called]()
            text += part or ""


def _answer(text: str, calls: Sequence[Called]) -> Iterator[Message]:
    """What the model said, with the calls at its end and what they returned."""
    if text or calls:
        message: Message = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [_told(called) for called in calls]
        yield message
    for called in calls:
        yield {"role": "tool", "tool_call_id": called.id, "content": called.result}


def _told(called: Called) -> Message:
    arguments = json.dumps(dict(called.call.arguments))
    function = {"name": called.call.name or "unknown", "arguments": arguments}
    return {"id": called.id, "type": "function", "function": function}
