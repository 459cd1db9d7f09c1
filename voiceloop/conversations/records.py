"""Records of a kept conversation. They are stored, and exported as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from voiceloop.llm.text.messages import OWN_CALL
from voiceloop.skills.known import Fact
from voiceloop.types import Outcome

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
