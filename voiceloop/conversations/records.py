"""What is kept of a conversation. The same records are exported as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from voiceloop.skills.known import Fact
from voiceloop.types import Outcome

CUT = ("interrupted", "failed")
"""Outcomes of turns whose replies were not heard to the end."""


class KeptCall(Struct, frozen=True):
    """A tool that a reply called."""

    name: str
    arguments: dict[str, Any]
    result: str


class KeptTurn(Struct, frozen=True, kw_only=True):
    """A turn. Its fields are columns of the store."""

    number: int
    at: datetime
    """When its reply was let out."""
    ended: datetime | None = None
    """When it was over; None if the process ended before."""
    language: str = ""
    """Code of the language that the user spoke."""
    said: str = ""
    """The user's words; empty if a timer was announced."""
    replied: str = ""
    """The whole reply, as far as it was written."""
    calls: tuple[KeptCall, ...] = ()
    words: int = 0
    """Number of spoken words that were heard."""
    heard: str = ""
    """The part of the reply that was heard."""
    kept: str = ""
    """The part that the language model remembers."""
    outcome: Outcome | None = None
    """How it ended; None if the process ended before."""

    @property
    def cut(self) -> bool:
        """Whether the user did not hear the end of the reply."""
        return self.outcome is None or self.outcome in CUT


class KeptSummary(Struct, frozen=True):
    """What the language model is told instead of old turns."""

    through: int
    """Number of the last turn that it stands for."""
    text: str
    """The summary; empty if those turns were dropped."""
    at: datetime


class KeptRecord(Struct, frozen=True, kw_only=True):
    """A whole conversation."""

    name: str
    began: datetime
    facts: tuple[Fact, ...] = ()
    """What the user asked to be remembered."""
    summaries: tuple[KeptSummary, ...] = ()
    turns: tuple[KeptTurn, ...] = ()


class KeptOutline(Struct, frozen=True):
    """A line of the list of conversations."""

    name: str
    turns: int
    facts: int
    began: datetime
    last: datetime | None
    """When its last turn began; None if it has none."""


class ResumedConversation(Struct, frozen=True):
    """What a conversation goes on with."""

    turns: tuple[KeptTurn, ...] = ()
    """The turns that no summary stands for, oldest first."""
    facts: tuple[Fact, ...] = ()
    summary: KeptSummary | None = None
    skills: bytes = b""
    """What the skills remember (`turn.skills.SkillsMemory`); empty if nothing was kept."""
    next_number: int = field(default=1)
    """Number of the next turn."""
