"""Records of a kept conversation: they are stored, exported as JSON, and make the prompt with which
the language model continues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from voiceloop.llm.text.messages import OWN_CALL
from voiceloop.skills.known import Fact
from voiceloop.types import Outcome, Past, ToolCall

CUT = ("interrupted", "failed")
"""Outcomes of turns whose replies were not heard to the end."""


class KeptCall(Struct, frozen=True):
    """A call of a tool in a reply."""

    name: str
    arguments: dict[str, Any]
    result: str


class KeptTurn(Struct, frozen=True, kw_only=True):
    """A turn of a kept conversation. Its fields are columns of the store."""

    number: int
    at: datetime
    """When the reply was committed."""
    ended: datetime | None = None
    """When the turn was over; None if the process ended before."""
    language: str = ""
    """Code of the language that the user spoke, e.g. `en`."""
    said: str = ""
    """The user's words; empty if the turn announced a timer."""
    replied: str = ""
    """The whole reply, as far as it was written."""
    calls: tuple[KeptCall, ...] = ()
    words: int = 0
    """Number of words of the reply that the user heard."""
    heard: str = ""
    """The part of the reply that the user heard."""
    kept: str = ""
    """The part of the reply that stays in the language model's history."""
    outcome: Outcome | None = None
    """How the turn ended; None if the process ended before."""

    @property
    def by_rule(self) -> bool:
        """Whether a rule did something. Its call is the whole reply for the language model."""
        return any(call.name.startswith(OWN_CALL) for call in self.calls)

    @property
    def answered(self) -> bool:
        """Whether a part of the reply stays in the language model's history."""
        return bool(self.kept) or self.by_rule

    @property
    def cut(self) -> bool:
        """Whether the user did not hear the end of the reply."""
        return self.outcome is None or self.outcome in CUT


class KeptSummary(Struct, frozen=True):
    """A summary that takes the place of old turns in the prompt."""

    through: int
    """Number of the last turn in the summary."""
    text: str
    """The summary; empty if the turns were dropped without one."""
    at: datetime


class KeptRecord(Struct, frozen=True, kw_only=True):
    """The whole content of a kept conversation."""

    name: str
    began: datetime
    facts: tuple[Fact, ...] = ()
    """The facts that the user asked to be remembered."""
    summaries: tuple[KeptSummary, ...] = ()
    turns: tuple[KeptTurn, ...] = ()


class KeptOutline(Struct, frozen=True):
    """One entry in the list of conversations."""

    name: str
    turns: int
    facts: int
    began: datetime
    last: datetime | None
    """The `at` of the conversation's newest turn; None if it has no turns."""


class ResumedConversation(Struct, frozen=True):
    """The kept state from which a conversation continues."""

    turns: tuple[KeptTurn, ...] = ()
    """The turns that are not in a summary, oldest first."""
    facts: tuple[Fact, ...] = ()
    summary: KeptSummary | None = None
    skills: bytes = b""
    """The state of the skills, a `turn.skills.SkillsMemory` as MessagePack; empty if none was
    kept."""
    next_number: int = field(default=1)
    """Number of the next turn."""


MOST_FACT_CHARS = 800
"""Maximum number of characters of all facts in the system prompt. If the facts are longer, the
oldest ones are left out."""
MOST_SUMMARY_CHARS = 1500
REMEMBER = "The user asked you to remember:"
EARLIER = "Earlier in this conversation:"


def past(turns: Iterable[KeptTurn]) -> list[Past]:
    """Return the exchanges for the language model, in the form that they have in an open
    conversation.

    Of each reply only the part `kept` is there, and of what a rule did only the call. If nothing of
    it is there, the user's words are put before the words of the next turn. At the end of `turns`,
    such words are left out.
    """
    found, unanswered = list[Past](), list[str]()
    for turn in turns:
        said = " ".join(filter(None, (*unanswered, turn.said)))
        if not turn.answered:
            unanswered = [said]
            continue
        unanswered = []
        calls = [
            (
                ToolCall(turn.number, f"call_{turn.number}_{n}", call.name, call.arguments),
                call.result,
            )
            for n, call in enumerate(turn.calls, 1)
        ]
        found.append(Past(said, tuple(calls) if turn.by_rule else (*calls, turn.kept)))
    return found


def unanswered_end(turns: Sequence[KeptTurn]) -> bool:
    """Return whether nothing of the last turn's reply is kept. The next exchange then begins with
    its words."""
    return bool(turns) and not turns[-1].answered


def system_prompt(system: str, facts: Sequence[Fact], summary: str) -> str:
    """Return `system` with the facts and the summary added. An empty summary is left out."""
    parts = [system]
    if told := _newest(facts):
        parts.append(f"{REMEMBER} {' '.join(told)}")
    if summary:
        parts.append(f"{EARLIER} {summary[:MOST_SUMMARY_CHARS]}")
    return " ".join(filter(None, parts))


def _newest(facts: Sequence[Fact]) -> list[str]:
    told, left = list[str](), MOST_FACT_CHARS
    for fact in reversed(facts):
        sentence = f"{fact.text.rstrip('.')}."
        left -= len(sentence) + 1
        if left < 0:
            break
        told.insert(0, sentence)
    return told


def transcript(turns: Iterable[KeptTurn]) -> str:
    """Return the turns as text, with one line for each time that the user or the assistant
    speaks."""
    lines = list[str]()
    for turn in turns:
        if turn.said:
            lines.append(f"User: {turn.said}")
        if turn.kept:
            lines.append(f"Assistant: {turn.kept}")
    return "\n".join(lines)
