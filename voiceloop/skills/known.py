"""Types that all skills share: the context of a request, and the answer to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

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
    days: tuple[int, ...] = ()
    """Weekdays on which it rings again at the same time; Monday is 0."""
    every_s: int = 0
    """Seconds after which it rings again; 0 if it does not."""
    paused_s: int | None = None
    """Seconds that are left of a paused timer; None while it runs."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request about timers that lacks something, for which the last reply asked."""

    kind: str
    """Kind of the request, such as `timer`."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the request said already, such as the name of the timer or its new duration."""


class Effect(NamedTuple):
    """What an answer does, as a call with its result. The language model reads it in place of the
    spoken words, because a small model copies such words without doing anything."""

    name: str
    asked: str
    """The kind of the request."""
    result: Mapping[str, object]


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
    pending: Pending | None = None
    """The request for whose missing part the last reply asked; None if it asked for none."""
    just_set: int | None = None
    """Number of the timer that the last request set; None if it set none."""
    subject: int | None = None
    """Number of the timer that was talked about last; None before the first."""
    since_timers: int | None = None
    """Number of replies since the last one about timers; None before the first."""
    just_rung: Timer | None = None
    """The timer that rang last; None before the first."""
    facts: Sequence[Fact] = ()
    """What the user asked to be remembered, oldest first."""
    keeps: bool = False
    """True if facts outlast the conversation."""
    just_kept: int | None = None
    """Number of the fact that the last request added; None if it added none."""
    tools: Sequence[str] = ()
    """Tools of the user's own that the language model may call now, each as `name: description`.
    voiceloop's own tools are left out."""
    acts: bool = False
    """True if the language model may do what the user wishes, and says what it can do."""
    persona: bool = False
    """True if the language model says who it is: the user wrote the system prompt, or it acts."""
    seed: int = 0
    """Seed of whatever is left to chance, such as a coin. It differs between turns, but not between
    the attempts to answer one turn."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: a text to say, and effects such as a timer to start. The effects
    happen only once the user's words are final."""

    text: str
    """Text to say; empty says nothing."""
    sets: Sequence[Timer] = ()
    """Timers to start. Those with the number 0 are new and get theirs then; any other one replaces
    the running timer with its number."""
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
    pending: Pending | None = None
    """The request for whose missing part the answer asks."""
    about: Sequence[int] | None = None
    """Numbers of the running timers that the answer is about; None if it is not about timers."""
    effect: Effect | None = None
    """What the answer does, for the language model; None if it only says something."""
    aside: bool = False
    """True if the request is about the conversation itself. Then it does not become part of
    `SkillContext.asked`."""
