"""Converts the items of a conversation to the history that the language model reads, and turns of a
kept conversation to items."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import cast

from voiceloop.conversations.records import KeptTurn
from voiceloop.foreign import parsed
from voiceloop.llm.text.messages import OWN_CALL
from voiceloop.types import Past, ToolCall, spaced
from voiceloop.wire.items import (
    FunctionCall,
    FunctionCallOutput,
    InputAudioPart,
    InputText,
    Item,
    Message,
    NewId,
    OutputAudioPart,
    OutputText,
)

SILENCE = "…"
"""Text that the language model reads in place of the user's words when there are none."""


def text_of(item: Item) -> str:
    """Return the texts and transcripts of a message, joined; an empty text for other items."""
    if not isinstance(item, Message):
        return ""
    found: list[str] = []
    for part in item.content:
        match part:
            case InputText() | OutputText():
                found.append(part.text)
            case InputAudioPart() | OutputAudioPart():
                found.append(part.transcript or "")
    return spaced(found)


def unanswered(items: Sequence[Item]) -> str:
    """Return what the user has said since the last message or call of the model. If the user has
    said nothing since then, return the system messages since then: some clients send users' texts
    as system messages."""
    said, noted = list[str](), list[str]()
    for item in items:
        match item:
            case Message(role="user"):
                said.append(text_of(item).strip())
            case Message(role="system"):
                noted.append(text_of(item).strip())
            case Message(role="assistant") | FunctionCall():
                said, noted = [], []
            case _:
                pass
    return " ".join(filter(None, said)) or " ".join(filter(None, noted))


def history(
    instructions: str, items: Iterable[Item], waiting: Collection[str]
) -> tuple[str, list[Past]]:
    """Return the system prompt, and the past turns with the user's words and the replies to them.

    The prompt has the `instructions` and all messages of the system. The turns leave out user
    messages whose ids are in `waiting`, user messages at the end without a reply, and calls without
    an output.
    """
    notes, past = [instructions], list[Past]()
    said, replied = list[str](), list[str | tuple[ToolCall, str]]()
    calls = dict[str, FunctionCall]()
    for item in items:
        text = text_of(item)
        match item:
            case Message(role="system"):
                notes.append(text)
            case Message(role="user") if item.id not in waiting:
                if replied:
                    past.append(Past(spaced(said), tuple(replied)))
                    said, replied = [], []
                said.append(text)
            case Message(role="assistant") if text and not _by_rule(replied):
                replied.append(text)
            case FunctionCall():
                calls[item.call_id] = item
            case FunctionCallOutput() if item.call_id in calls:
                replied.append((_called(calls.pop(item.call_id)), item.output))
            case _:
                pass
    if replied:
        past.append(Past(spaced(said), tuple(replied)))
    return "\n".join(filter(None, notes)), past


def items_of(turns: Iterable[KeptTurn], new_id: NewId) -> tuple[Item, ...]:
    """Return kept turns as items: the user's words, calls with their outputs, and what was heard of
    the replies."""
    items = list[Item]()
    for turn in turns:
        if turn.said:
            said = InputAudioPart(transcript=turn.said)
            items.append(Message("user", (said,), new_id("item")))
        if not turn.heard:
            continue  # these words belong to the next exchange
        for call in turn.calls:
            call_id, arguments = new_id("call"), json.dumps(call.arguments)
            items.append(FunctionCall(call.name, arguments, call_id, new_id("item")))
            items.append(FunctionCallOutput(call_id, call.result, new_id("item")))
        heard = OutputAudioPart(turn.heard)
        status = "incomplete" if turn.cut else "completed"
        items.append(Message("assistant", (heard,), new_id("item"), status))
    return tuple(items)


def _by_rule(replied: Sequence[str | tuple[ToolCall, str]]) -> bool:
    """Return whether the reply so far ends with what a rule did. The words that told the user of it
    are left out, since a small model copies them without doing anything."""
    last = replied[-1] if replied else ""
    return not isinstance(last, str) and last[0].name.startswith(OWN_CALL)


def _called(item: FunctionCall) -> ToolCall:
    """Convert a call for the language model. Arguments that are no JSON object count as none."""
    try:
        arguments = parsed(item.arguments or "{}")
    except ValueError:  # a client may write anything
        arguments = None
    given = cast("dict[str, object]", arguments) if isinstance(arguments, dict) else {}
    return ToolCall(0, item.call_id, item.name, given)
