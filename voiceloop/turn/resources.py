"""What every reply of a session works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from voiceloop.audio.player import Player
from voiceloop.engines import Conversation, Engines
from voiceloop.tts.pace import Pace
from voiceloop.turn.observer import Observer
from voiceloop.turn.overlap import EVERYTHING, Overlap
from voiceloop.turn.skills import Skills
from voiceloop.types import Clause, Event, SpeechChunk

Voiced = dict[tuple[str | None, float, Clause], list[SpeechChunk]]
"""Audio of clauses, by voice and speed."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What every reply of a session works with."""

    engines: Engines
    conversation: Conversation
    observer: Observer
    """Of that conversation."""
    player: Player
    show: Callable[[Event], None]
    """Tells whoever watches."""
    skills: Skills = field(default_factory=Skills)
    overlap: Overlap = EVERYTHING
    pace: Pace = field(default_factory=Pace)
    foreseen: Voiced = field(default_factory=Voiced)
    """Audio of what replies are likely to begin with."""
