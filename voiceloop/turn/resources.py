"""The engines and other objects that all replies of a session share, and what a session does at the
same time and ahead of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace

from voiceloop.audio.player import Player
from voiceloop.dialogue import inputs
from voiceloop.dialogue.endpoint import ENDPOINT_RULES
from voiceloop.dialogue.floor import INTERRUPTION_RULES
from voiceloop.engines import Conversation, Engines, load_rule
from voiceloop.settings.config import TurnConfig
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.tts.pace import Pace
from voiceloop.turn.skills import Skills
from voiceloop.types import Clause, Event, SpeechChunk


@dataclass(frozen=True, slots=True)
class Overlap:
    """A choice of the work that is done at the same time and ahead of time. Each part can be left
    out, to measure how much faster it makes replies."""

    stages: bool = True
    """Recognition, thinking, synthesis and playback run at the same time. Otherwise each runs after
    the one before it, and all other parts are left out too."""
    prefill: bool = True
    """The language model reads the user's words while they speak."""
    early_reply: bool = True
    """The reply begins in the first silence; otherwise at the endpoint."""
    carry_over: bool = True
    """A reply that began too early becomes the draft of the next reply; otherwise the next reply
    has no such draft."""
    held_audio: bool = True
    """The first clause of an early reply is synthesised before the endpoint."""


EVERYTHING = Overlap()
SEQUENTIAL = Overlap(False, False, False, False, False)
"""Each stage runs after the one before it. This is the reference for all measurements."""
STREAMING = Overlap(True, False, False, False, False)
"""Stages overlap, but nothing is guessed except draft tokens."""
OVERLAPS: Mapping[str, Overlap] = {
    "sequential": SEQUENTIAL,
    "streaming": STREAMING,
    "speculative": EVERYTHING,
} | {
    f"no-{part.name.replace('_', '-')}": replace(EVERYTHING, **{part.name: False})
    for part in fields(Overlap)
    if part.name != "stages"
}
"""Overlaps by name. A name is a mode, or `no-` and the part that is left out: `no-prefill`."""


def load_rules(turns: TurnConfig) -> None:
    """Add the configured rules to those that the core knows. Raises ConfigError for a name that no
    rule has."""
    if turns.endpoint not in ENDPOINT_RULES:
        ENDPOINT_RULES[turns.endpoint] = load_rule("endpoint", turns.endpoint, ENDPOINT_RULES)
    if turns.interruption not in INTERRUPTION_RULES:
        rule = load_rule("interruption", turns.interruption, INTERRUPTION_RULES)
        INTERRUPTION_RULES[turns.interruption] = rule


Voiced = dict[tuple[str | None, float, Clause], list[SpeechChunk]]
"""Audio of clauses, by voice, speed and clause."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The engines and other objects that all replies of a session share."""

    engines: Engines
    conversation: Conversation
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
