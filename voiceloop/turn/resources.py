"""The engines and other objects that all replies of a session share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from voiceloop.audio.player import Player
from voiceloop.dialogue import inputs
from voiceloop.engines import Conversation, Engines
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.tts.pace import Pace
from voiceloop.turn.observer import Observer
from voiceloop.turn.overlap import EVERYTHING, Overlap
from voiceloop.turn.skills import Skills
from voiceloop.types import Clause, Event, SpeechChunk

Voiced = dict[tuple[str | None, float, Clause], list[SpeechChunk]]
"""Audio of clauses, by voice, speed and clause."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The engines and other objects that all replies of a session share."""

    engines: Engines
    conversation: Conversation
    observer: Observer
    """Observer of `conversation`."""
    player: Player
    report: Callable[[inputs.Input], None]
    """Function that passes a report to the core, and carries out the core's actions."""
    show: Callable[[Event], None]
    """Function that shows an event to the user or client."""
    skills: Skills = field(default_factory=Skills)
    toolbox: Toolbox = NO_TOOLS
    """Tools of the user's own."""
    overlap: Overlap = EVERYTHING
    pace: Pace = field(default_factory=Pace)
    prefetched: Voiced = field(default_factory=Voiced)
    """Prefetched audio of clauses with which replies are likely to begin."""
