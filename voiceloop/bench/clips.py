"""What a microphone hears in one turn of the bench, and what is true of it.

Positions are samples at 16 kHz from the beginning of the clip, an end is the sample after the last,
and a sample of speech counts where it is audible (`playback.AUDIBLE`) before any noise is added.
What is not known is None. Nothing here knows how a clip was made, or what was made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from voiceloop.bench.sentences import Addition, Standing
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
class Said:
    """What the user says in a clip."""

    text: str | None = None
    words: tuple[TimedWord, ...] | None = None
    start: int | None = None
    """The first audible sample."""
    end: int | None = None
    """The sample after the last audible one: the true end of speech."""
    pauses: tuple[Pause, ...] | None = None
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
class Clip:
    """One turn as the microphone hears it: some silence, what is said, and silence for ever."""

    name: str
    pcm: Pcm
    background: Pcm
    """What is heard when nobody speaks, over and over; `pcm` is made with it."""
    said: Said
    voice: str | None = None
    noise: NoiseKind | None = None
    snr_db: float | None = None
    """Power of the speech over that of the noise, both as long as the speech is."""
    interruption: Interruption | None = None
    addition: Addition | None = None
    """Of what the speech is made in the suite of additions."""

    def read(self, start: int, count: int) -> Pcm:
        """The `count` samples from `start` on, of a clip that never ends."""
        at = np.arange(start, start + count)
        heard = self.background[at % len(self.background)]
        inside = at < len(self.pcm)
        heard[inside] = self.pcm[at[inside]]
        return heard
