"""What the language model reads of the items of a conversation, and what is not answered yet."""

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


class Unanswered:
    """The unanswered texts and outputs of one connection."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        """Calls without an output yet, by the id that the client was sent."""
        self._results: list[tuple[ToolCall, str]] = []
        """Calls with their outputs, which no response has answered yet."""
        self._texts: dict[str, str] = {}
        """Texts of the user, by item id."""
        self._newest: int | None = None
        """Number of the turn whose reply can go on with the outputs of its calls; None if no reply
        can."""

    @property
    def items(self) -> Collection[str]:
        """Item ids of the texts."""
        return self._texts.keys()

    @property
    def brought(self) -> bool:
        """Whether outputs of calls have not been answered."""
        return bool(self._results)

    def call(self, call_id: str, call: ToolCall) -> None:
        """Add a call that was sent to the client."""
        self._calls[call_id], self._newest = call, call.turn

    def bring(self, call_id: str, output: str) -> bool:
        """Add the output of a call. Return False if there is no such call."""
        call = self._calls.pop(call_id, None)
        if call is not None:
            self._results.append((call, output))
        return call is not None

    def write(self, item_id: str, text: str) -> None:
        """Add a text of the user."""
        self._texts[item_id] = text

    def forget(self, item_id: str) -> None:
        """Remove the text of an item, if there is one."""
        self._texts.pop(item_id, None)

    def keep_calls(self, known: Collection[str]) -> None:
        """Forget the calls whose ids are not among `known`: no output of them can come any more."""
        kept = {call_id: call for call_id, call in self._calls.items() if call_id in known}
        if len(kept) < len(self._calls):
            self._calls = kept
            self.moved_on()

    def begin(self, turn: int) -> None:
        """Note that the response to a turn begins."""
        if turn != self._newest:
            self.moved_on()

    def moved_on(self) -> None:
        """Note that no reply is left that outputs of calls could continue: another turn has begun,
        the reply was cut, or the history was rewritten."""
        self._newest = None

    def continues(self, results: Iterable[tuple[ToolCall, str]]) -> bool:
        """Return whether the reply that made all these calls can go on with their outputs."""
        return {call.turn for call, _ in results} == {self._newest}

    def missing(self) -> list[str]:
        """Return the names of the called functions that still lack an output, although another call
        of the same turn has one."""
        turns = {call.turn for call, _ in self._results}
        return [call.name for call in self._calls.values() if call.turn in turns]

    def take_results(self) -> list[tuple[ToolCall, str]]:
        """Remove and return the calls with their outputs, of all turns in which no output is
        missing."""
        lacking = {call.turn for call in self._calls.values()}
        found, self._results = self._results, []
        for call, output in found:
            if call.turn in lacking:
                self._results.append((call, output))
        return [(call, output) for call, output in found if call.turn not in lacking]

    def take_texts(self, items: Iterable[str] | None = None) -> str:
        """Remove and return the user's texts, one per line: all of them, or those of `items`."""
        among = list(self._texts) if items is None else [one for one in items if one in self._texts]
        return "\n".join(self._texts.pop(one) for one in among)
