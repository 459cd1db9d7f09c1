"""What answers depend on besides the request, and what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

What = Literal["timer", "alarm", "reminder"]
GAINS = (-18.0, 12.0)
"""The softest and the loudest, in decibels against what the voice gives."""
GAIN_STEP = 6.0
SPEEDS = (0.6, 1.8)
"""The slowest and the fastest, against the configured pace."""
SPEED_STEP = 1.2


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that runs."""

    number: int
    """Its own."""
    what: What
    due: datetime
    seconds: int
    """How long it runs in all."""
    name: str = ""
    """What it is called, or reminds of."""
    rings: str = ""
    """What is said when it is over."""


@dataclass(frozen=True, slots=True)
class VoiceAdjustment:
    """How replies sound, against how the voice sounds by itself."""

    gain_db: float = 0.0
    speed: float = 1.0

    @property
    def gain(self) -> float:
        """What samples are multiplied by."""
        return 10 ** (self.gain_db / 20)

    def changed(self, change: str) -> VoiceAdjustment:
        """Louder, softer, slower, faster or normal, as far as that goes."""
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


@dataclass(frozen=True, slots=True)
class SkillContext:
    """What is known as something is asked."""

    now: datetime
    """With its time zone."""
    timers: Sequence[Timer] = ()
    asked: Sequence[str] = ()
    """What was asked and said before, but for what only concerned the talk itself."""
    heard: str = ""
    """What was heard of the last reply."""
    voice: VoiceAdjustment = VoiceAdjustment()
    paced: bool = True
    """The voice can speak faster and slower."""
    asks_for_time: bool = False
    """The last reply asked for how long a timer is to be."""
    just_set: int | None = None
    """The number of the timer that the last request set."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to a request, and what is done about it once it is sure that it was made."""

    text: str
    """Empty: nothing is said."""
    sets: Timer | None = None
    """A timer that is to run; its number is not known yet."""
    cancels: frozenset[int] = frozenset()
    """Numbers of timers that are to run no more."""
    voice: VoiceAdjustment | None = None
    """How this and what follows is to sound; None: as before."""
    ends: bool = False
    """The talk is over once this has been heard."""
    asks_for_time: bool = False
    """It asks for how long a timer is to be."""
    aside: bool = False
    """It concerns the talk itself: nobody who asks what they asked means this."""
