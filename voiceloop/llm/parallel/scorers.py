"""Score replies. Of several replies, the one with the largest score is the best.

A scorer is a function of a `Candidate` alone. Further scorers are registered as entry points of the
group `voiceloop.scorer`. Such a scorer is imported only when it is chosen.
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
"""Number of words up to which `concise` does not score a reply lower for its length. A reply should
be short because it is heard, not read."""
GRAM = 3
"""Number of successive words that count as a repetition if they occur again. Fewer words may be a
common phrase."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several replies, or the beginning of one."""

    text: str
    """The text that would be spoken."""
    tokens: tuple[int, ...]
    """All decided tokens, including those of thoughts and tool calls and the one that ends the
    reply."""
    logprobs: tuple[float, ...]
    """The log-probability of each token for the target, before penalties and temperature."""
    complete: bool
    """Whether the candidate is a whole reply. The beginning of a reply may end anywhere."""


Scorer = Callable[[Candidate], float]


def likelihood(candidate: Candidate) -> float:
    """Return the mean log-probability of the candidate's tokens for the target, at most 0.

    The sum of the log-probabilities would prefer the shortest reply (Adiwardana et al. 2020, Meena,
    arXiv 2001.09977, section 2.4, "sample-and-rank").
    """
    return fmean(candidate.logprobs)


def concise(candidate: Candidate) -> float:
    """Return a score of at most 0 without using a model. Repetition and words beyond `LONG_WORDS`
    lower it. A reply without words scores -inf.

    Repetition is the share of runs of `GRAM` words that occurred before in the reply (1 minus
    distinct-n of Li et al. 2016, arXiv 1510.03055).
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
    """Return the index of the candidate with the largest score; if several have it, the first
    one."""
    scores = [score(candidate) for candidate in candidates]
    return scores.index(max(scores))
