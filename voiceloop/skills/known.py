"""Types that all skills share: the context of a request, and the answer to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

What = Literal["timer", "alarm", "reminder"]
GAINS = (-18.0, 12.0)
"""Smallest and largest gain in decibels, relative to the configured voice."""
GAIN_STEP = 6.0
SPEEDS = (0.6, 1.8)
"""Smallest and largest speed, as a factor of the configured pace."""
SPEED_STEP = 1.2


@dataclass(frozen=True, slots=True)
class Timer:
    """A running timer, alarm or reminder."""

    number: int
    """Number that identifies the timer; 0 until it is started."""
    what: What
    due: datetime
    seconds: int
    """Seconds from start to end."""
    name: str = ""
    """The timer's name, or the text of a reminder."""
    rings: str = ""
    """Text that is said when the timer is over."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the user asked to be remembered."""

    number: int
    """Number that identifies the fact; those of later facts are larger."""
    text: str
    """The user's words."""


@dataclass(frozen=True, slots=True)
class VoiceAdjustment:
    """Gain and speed of replies, relative to the configured voice."""

    gain_db: float = 0.0
    speed: float = 1.0

    @property
    def gain(self) -> float:
        """Return the factor by which the samples of a reply are multiplied."""
        return 10 ** (self.gain_db / 20)

    def changed(self, change: str) -> VoiceAdjustment:
        """Return the adjustment after `change`. `louder` and `softer` change the gain by one step,
        `slower` and `faster` the speed, within `GAINS` and `SPEEDS`. `normal` gives the configured
        voice."""
        match change:
            case "louder":
                return replace(self, gain_db=min(self.gain_db + GAIN_STEP, GAINS[1]))
            case "softer":
                return replace(self, gain_db=max(self.gain_db - GAIN_STEP, GAINS[0]))
            case "slower":
                return replace(self, speed=max(self.speed / SPEED_STEP, SPEEDS[0]))
            case "faster":
                return replace(self, speed=min(self.speed * SPEED_STEP, SPEEDS[1]))
            case _:
                return VoiceAdjustment()

    def at(self, percent: int) -> VoiceAdjustment:
        """Return the adjustment with the gain at `percent` of the way through `GAINS`."""
        return replace(self, gain_db=GAINS[0] + (GAINS[1] - GAINS[0]) * percent / 100)


@dataclass(frozen=True, slots=True)
class SkillContext:
    """The state of the conversation when a request is made.

    Its fields are everything that skills need to know.
    """

    now: datetime
    """Current time, with its time zone."""
    timers: Sequence[Timer] = ()
    asked: Sequence[str] = ()
    """What the user said in earlier turns, oldest first. Requests about the conversation itself are
    left out."""
    heard: str = ""
    """The part of the last reply that the user heard, as text."""
    voice: VoiceAdjustment = VoiceAdjustment()
    paced: bool = True
    """True if the voice can speak faster and slower."""
    asks_for_time: bool = False
    """True if the last reply asked how long a timer should run."""
    just_set: int | None = None
    """Number of the timer that the last request set; None if it set none."""
    facts: Sequence[Fact] = ()
    """What the user asked to be remembered, oldest first."""
    keeps: bool = False
    """True if facts outlast the conversation."""
    just_kept: int | None = None
    """Number of the fact that the last request added; None if it added none."""
    tools: Sequence[str] = ()
    """Tools of the user's own that the language model may call now, each as `name: description`.
    voiceloop's own tools are left out."""
    persona: bool = False
    """True if the user wrote the system prompt. Then the language model says who it is."""
    seed: int = 0
    """Seed of whatever is left to chance, such as a coin. It differs between turns, but not between
    the attempts to answer one turn."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: a text to say, and effects such as a timer to start. The effects
    happen only once the user's words are final."""

    text: str
    """Text to say; empty says nothing."""
    sets: Timer | None = None
    """Timer to start; None for none. It gets its number when it starts."""
    cancels: frozenset[int] = frozenset()
    """Numbers of timers to cancel."""
    remembers: str = ""
    """A fact to remember; empty for none."""
    strikes: frozenset[int] = frozenset()
    """Numbers of facts to forget."""
    voice: VoiceAdjustment | None = None
    """How this reply and later ones sound; None changes nothing."""
    ends: bool = False
    """True if the conversation ends once this answer has been heard."""
    asks_for_time: bool = False
    """True if the answer asks how long a timer should run."""
    aside: bool = False
    """True if the request is about the conversation itself. Then it does not become part of
    `SkillContext.asked`."""
