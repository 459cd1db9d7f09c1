"""Which of several replies is the best: a number for each, of which the largest wins.

Scorers are functions of what was said alone. Others than these register by entry point in group
`voiceloop.scorer`, a function of a `Candidate`; they are imported only when they are chosen.
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
"""A reply that is heard, and not read, should not have more words."""
GRAM = 3
"""So many words in a row that come again are a repetition, and not a turn of phrase."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several replies, or of their beginnings."""

    text: str
    """What would be spoken."""
    tokens: tuple[int, ...]
    """All that were decided, those of thoughts, of tool calls and of the end included."""
    logprobs: tuple[float, ...]
    """How likely each was to the target, before penalties and temperature: natural logarithms."""
    complete: bool
    """It is a whole reply; others may end anywhere."""


Scorer = Callable[[Candidate], float]


def likelihood(candidate: Candidate) -> float:
    """The target's mean log-likelihood of a token: at most 0.

    The mean, and not the sum, which would choose the shortest (Adiwardana et al. 2020, Meena,
    arXiv 2001.09977, section 2.4, "sample-and-rank").
    """
    return fmean(candidate.logprobs)


def concise(candidate: Candidate) -> float:
    """A rule that needs no model: at most 0, and less for what is said twice, for words beyond
    `LONG_WORDS`, and for silence.

    What is said twice is the share of runs of `GRAM` words that came before (1 less distinct-n of
    Li et al. 2016, arXiv 1510.03055).
    """
    words = candidate.text.lower().split()
    if not words:
        return -math.inf
    runs = [tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)]
    repeated = 1 - len(set(runs)) / len(runs) if runs else 0.0
    return -repeated - max(0, len(words) - LONG_WORDS) / LONG_WORDS


BUILT_IN: Mapping[str, Scorer] = {"likelihood": likelihood, "concise": concise}


def scorer(name: str) -> Scorer:
    """The scorer of that name. Raises ConfigError for one that nobody registered."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name not in found:
        hint = suggestion(name, [*BUILT_IN, *found])
        raise ConfigError(f"there is no scorer called '{name}'", hint)
    return found[name].load()


def best(candidates: Sequence[Candidate], score: Scorer) -> int:
    """Index of the candidate with the largest score; of equal ones the first."""
    scores = [score(candidate) for candidate in candidates]
    return scores.index(max(scores))
