"""Judges whether a user who makes a sound while a reply plays wants to interrupt it.

The reply pauses at once, and this rule decides what becomes of it. After a cough, a "yes, yes" or
an echo of the reply itself, the reply goes on. Words, or a voice that goes on for half a second,
end the reply. The rule has no state, audio or clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from voiceloop.asr.agreement import normalise
from voiceloop.languages import Language

DECIDE_MS = 480.0
"""Maximum time in milliseconds from the sound to the decision, unless recognition takes longer. It
is half a second minus the frame in which the sound is noticed."""
CLEAR = 2
"""Number of words from which a sound is an interruption at once. Backchannels are not counted."""
ECHO = 2
"""Minimum number of words that are an echo of the reply if they occur in it in the same order.
Fewer may be equal by chance."""


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
) -> Verdict:
    """Judge by the user's `words` in `language` whether a sound interrupts the reply, which paused
    `waited_ms` ago.

    `speaking` says whether the user's voice goes on, and `final` whether no more words come.
    `spoken` are the words of the reply that sounded before it paused.
    """
    said = [word for word in map(normalise, words) if word]
    meant = [word for word in said if word not in language.backchannels]
    if _echo(said, [normalise(word) for word in spoken]):
        meant = []
    if len(meant) >= CLEAR:
        return Verdict.INTERRUPT
    if speaking:
        if waited_ms < DECIDE_MS:
            return Verdict.WAIT
        return Verdict.RESUME if said and not meant else Verdict.INTERRUPT
    if not final:
        return Verdict.WAIT
    return Verdict.RESUME if language.articles.issuperset(meant) else Verdict.INTERRUPT


def _echo(said: Sequence[str], spoken: Sequence[str]) -> bool:
    """Return whether `spoken` contains all of `said` in a row, and `said` is too long for
    chance."""
    n = len(said)
    return n >= ECHO and any(
        list(spoken[at : at + n]) == list(said) for at in range(len(spoken) - n + 1)
    )
