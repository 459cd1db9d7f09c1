"""Judges whether a user who makes a sound while a reply plays wants to interrupt it.

The reply pauses at once, and this rule decides what becomes of it. After a cough, a "yes, yes" or
an echo of the reply itself, the reply goes on. Words, or a voice that goes on longer than any
backchannel, end the reply. The rule has no state, audio or clock.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def judge(
    words: Sequence[str],
    language: Language,
    *,
    speaking: bool,
    final: bool,
    waited_ms: float,
    spoken: Sequence[str],
    likely: bool = True,
) -> Verdict:
    """Judge by the user's `words` in `language` whether a sound interrupts the reply, which paused
    `waited_ms` ago.

    `speaking` says whether the user's voice goes on, and `final` whether no more words come.
    `spoken` are the words of the reply that sounded before it paused. `likely` says whether the
    recogniser is sure of `words`; of others, more may be known when the voice has ended.
    """
    said = _normal(words)
    meant = [word for word in said if not language.is_backchannel(word)]
    if _echo(said, _normal(spoken), ECHO):
        meant = []
    if len(meant) >= CLEAR and (likely or not speaking):
        return Verdict.INTERRUPT
    if speaking:
        if waited_ms < (DECIDE_MS if said and likely else WORDLESS_MS):
            return Verdict.WAIT
        return Verdict.RESUME if said and not meant else Verdict.INTERRUPT
    if not final:
        return Verdict.WAIT
    return Verdict.RESUME if language.articles.issuperset(meant) else Verdict.INTERRUPT


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
