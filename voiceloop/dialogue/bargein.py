"""Judges whether a user who makes a sound while a reply plays wants to interrupt it.

The reply pauses at once, and this rule decides what becomes of it. After a cough, a "yes, yes" or
an echo of the reply itself, the reply goes on. Words, or a voice that goes on longer than any
backchannel, end the reply. The rule has no state, audio or clock. A package may bring a rule of its
own (`voiceloop.interruption` entry points).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum, auto

from voiceloop.asr.agreement import normalise
from voiceloop.languages import Language

DECIDE_MS = 480.0
"""Maximum time in milliseconds from the beginning of the sound to the decision, while the user's
voice goes on. It is half a second minus the frame in which the sound is noticed."""
WORDLESS_MS = 2000.0
"""Maximum time in milliseconds from the beginning of the sound to the decision, while the user's
voice goes on and the recogniser has no likely words of it yet. A slow recogniser has none of "yeah,
right" after `DECIDE_MS`. The reply is silent meanwhile, so waiting costs the user nothing."""
LIKELY = 0.5
"""Minimum mean probability of words that end a reply while the user's voice goes on. For a hum that
goes on, Whisper may have less likely words, and none once all of the hum is decoded."""
CLEAR = 2
"""A sound with at least this many words is an interruption at once. Backchannels are not
counted."""
ECHO = 2
"""A sound during the reply may be an echo if it has at least this many words and the reply contains
them in a row. Fewer words may be equal by chance."""
WHOLE_ECHO = 3
"""A whole turn is an echo if it has at least this many words and the reply contains them in a row.
A user who answers at once may repeat two words of the reply."""
MISHEARD = 6
"""A turn with at least this many words may be an echo even if some words were misheard."""
ALIKE = 0.8
"""A turn of `MISHEARD` words or more is an echo if an equally long part of the reply contains at
least this share of the turn's words, in the same order."""


class Verdict(Enum):
    """What becomes of a paused reply."""

    WAIT = auto()
    RESUME = auto()
    INTERRUPT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Interjection:
    """A sound of the user during a reply, which is paused since."""

    words: Sequence[str]
    language: Language
    speaking: bool
    """Whether the user's voice goes on."""
    final: bool
    """Whether no more words come."""
    waited_ms: float
    """Milliseconds since the reply was paused."""
    spoken: Sequence[str]
    """The words of the reply that sounded before it paused."""
    likely: bool = True
    """Whether the recogniser is sure of `words`. Of others, more may be known when the voice has
    ended."""


class InterruptionRule:
    """A rule for what becomes of a paused reply. This one is `words`."""

    def judge(self, sound: Interjection) -> Verdict:
        """Judge whether `sound` interrupts the reply. This is asked whenever more is known."""
        said = _normal(sound.words)
        meant = [word for word in said if not sound.language.is_backchannel(word)]
        if _echo(said, _normal(sound.spoken), ECHO):
            meant = []
        if len(meant) >= CLEAR and (sound.likely or not sound.speaking):
            return Verdict.INTERRUPT
        if sound.speaking:
            if sound.waited_ms < (DECIDE_MS if said and sound.likely else WORDLESS_MS):
                return Verdict.WAIT
            return Verdict.RESUME if said and not meant else Verdict.INTERRUPT
        if not sound.final:
            return Verdict.WAIT
        articles = sound.language.articles
        return Verdict.RESUME if articles.issuperset(meant) else Verdict.INTERRUPT


INTERRUPTION_RULES = {"words": InterruptionRule()}
"""The rules by their names in `turns.interruption`. `loading` adds the configured one of a
package."""


def comes_back(words: Sequence[str], spoken: Sequence[str]) -> bool:
    """Return whether a turn is only an echo, because the microphone heard the loudspeaker. `words`
    are all words of the turn. `spoken` are the reply's words that sounded at that time."""
    said, reply = _normal(words), _normal(spoken)
    if _echo(said, reply, WHOLE_ECHO):
        return True
    n = len(said)
    parts = [reply[at : at + n] for at in range(max(1, len(reply) - n + 1))]
    return n >= MISHEARD and any(_alike(said, part) >= ALIKE * n for part in parts)


def _echo(said: Sequence[str], spoken: Sequence[str], least: int) -> bool:
    """Return whether `said` has at least `least` words, and `spoken` contains them in a row."""
    n = len(said)
    return n >= least and any(
        list(spoken[at : at + n]) == list(said) for at in range(len(spoken) - n + 1)
    )


def _alike(said: Sequence[str], spoken: Sequence[str]) -> int:
    """Return how many words `said` and `spoken` have in common, in the same order."""
    blocks = SequenceMatcher(None, said, spoken, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)


def _normal(words: Sequence[str]) -> list[str]:
    """Return the normalised words, without those that have neither letters nor digits."""
    return [word for word in map(normalise, words) if word]
