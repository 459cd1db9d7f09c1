"""The clips of the lab's suites, which may have pauses, interruptions and noise."""

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
    """The word as written, with its punctuation."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Pause:
    """A silence between two words of the user."""

    words: int
    """Number of words before it."""
    prefix: str
    """The words before it, without the punctuation at their end."""
    standing: Standing
    """The standing of the words before it."""
    start: int
    """The first silent sample."""
    end: int
    """The first audible sample after the silence."""


@dataclass(frozen=True, slots=True)
class PausedSaid(ClipSpeech):
    """What the user says in a clip, with the known pauses."""

    words: tuple[TimedWord, ...] = ()
    """The words with their times; empty if these are not known."""
    pauses: tuple[Pause, ...] = ()
    """The inserted pauses. At a comma the synthesizer itself is silent for up to 250 ms."""
    own_pauses: tuple[tuple[int, int], ...] = ()
    """Beginning and end, in samples, of a person's own pauses, in a recording without inserted
    ones."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """A sound that the user makes while the reply plays."""

    kind: InterruptionKind
    text: str
    """The words of the sound; empty for a cough."""
    pcm: Pcm
    """The sound alone, to be added to what the microphone hears."""
    start: int
    """The first audible sample of `pcm`."""
    end: int
    """The sample after its last audible one."""
    delay_ms: float
    """Milliseconds from the first audible sample of the reply to the first one of this sound."""
    voiced: int | None = None
    """Sample of `pcm` at which the voice begins: late in a cough; None for a sound without
    voice."""


@dataclass(frozen=True, slots=True)
class LabClip(Clip):
    """A clip of the lab's suites."""

    said: PausedSaid
    noise: NoiseKind | None = None
    snr_db: float | None = None
    """Power of the speech over that of the noise, both taken while the speech lasts."""
    interruption: Interruption | None = None
    addition: Addition | None = None
    """The addition that is said, in the suite `additions`."""
