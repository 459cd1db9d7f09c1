"""Scorers, which choose the best of several replies: the one with the largest score.

A scorer is a function of a `Candidate` alone. Other scorers than these register by entry point in
the group `voiceloop.scorer`; they are imported only when they are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from statistics import fmean

from voiceloop.errors import ConfigError
from voiceloop.schema import suggestion

GROUP = "voiceloop.scorer"
LONG_WORDS = 40
"""Maximum number of words that a reply should have, because it is heard, not read."""
GRAM = 3
"""Number of words in a row that count as a repetition if they occur again; fewer may be a common
phrase."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several replies, or the beginning of one."""

    text: str
    """The text that would be spoken."""
    tokens: tuple[int, ...]
    """All decided tokens, with those of thoughts, of tool calls and of the end."""
    logprobs: tuple[float, ...]
    """The log-probability of each token for the target, before penalties and temperature."""
    complete: bool
    """Whether it is a whole reply; other candidates may end anywhere."""


Scorer = Callable[[Candidate], float]


def likelihood(candidate: Candidate) -> float:
    """Return the target's mean log-likelihood of a token, which is at most 0.

    The sum would choose the shortest reply (Adiwardana et al. 2020, Meena, arXiv 2001.09977,
    section 2.4, "sample-and-rank").
    """
    return fmean(candidate.logprobs)


def concise(candidate: Candidate) -> float:
    """Score a reply without a model: at most 0, less for repetition and for words beyond
    `LONG_WORDS`, and -inf for a reply without words.

    Repetition is the share of runs of `GRAM` words that occurred before (1 minus distinct-n of Li
    et al. 2016, arXiv 1510.03055).
    """
    words = candidate.text.lower().split()
    if not words:
        return -math.inf
    runs = [tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)]
    repeated = 1 - len(set(runs)) / len(runs) if runs else 0.0
    return -repeated - max(0, len(words) - LONG_WORDS) / LONG_WORDS


BUILT_IN: Mapping[str, Scorer] = {"likelihood": likelihood, "concise": concise}


def scorer(name: str) -> Scorer:
    """Return the scorer called `name`. Raises ConfigError if none is registered under that name."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name not in found:
        hint = suggestion(name, [*BUILT_IN, *found])
        raise ConfigError(f"there is no scorer called '{name}'", hint)
    return found[name].load()


def best(candidates: Sequence[Candidate], score: Scorer) -> int:
    """Return the index of the candidate with the largest score; of equal ones the first."""
    scores = [score(candidate) for candidate in candidates]
    return scores.index(max(scores))
