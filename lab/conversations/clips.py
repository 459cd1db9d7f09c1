"""Clips with pauses, interruptions and noise: what only the lab puts into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lab.conversations.sentences import Addition, Standing
from voiceloop.bench.clips import Clip, ClipSpeech
from voiceloop.types import Pcm

InterruptionKind = Literal["words", "backchannel", "cough"]
NoiseKind = Literal["babble", "hum", "hiss"]


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word and when it sounds; words that the synthesizer runs together share their time."""

    text: str
    """As written, with its punctuation."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Pause:
    """A silence within what is said."""

    words: int
    """Words said before it."""
    prefix: str
    """Those words, without the punctuation at their end."""
    standing: Standing
    """How they stand by themselves."""
    start: int
    """The sample after the last audible one."""
    end: int
    """The next audible sample."""


@dataclass(frozen=True, slots=True)
class PausedSaid(ClipSpeech):
    """What the user says, with the pauses that are known."""

    words: tuple[TimedWord, ...] = ()
    """Nothing where their times are not known."""
    pauses: tuple[Pause, ...] = ()
    """Those that were put there; at a comma the synthesizer itself is silent for up to 250 ms."""
    own_pauses: tuple[tuple[int, int], ...] = ()
    """Beginning and end of those that a person made, in a recording into which none was put."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """A sound that the user makes while the answer plays."""

    kind: InterruptionKind
    text: str
    """What is said; nothing for a cough."""
    pcm: Pcm
    """The sound alone, to be added to what the microphone hears."""
    start: int
    """The first audible sample of `pcm`."""
    end: int
    """The sample after its last audible one."""
    delay_ms: float
    """From the answer's first audible sample to this sound's."""
    voiced: int | None = None
    """Where the voice begins: with the sound, but late in a cough; None for one without voice."""


@dataclass(frozen=True, slots=True)
class LabClip(Clip):
    """A clip of the lab's suites."""

    said: PausedSaid
    noise: NoiseKind | None = None
    snr_db: float | None = None
    """Power of the speech over that of the noise, both as long as the speech is."""
    interruption: Interruption | None = None
    addition: Addition | None = None
    """Of what the speech is made in the suite of additions."""
