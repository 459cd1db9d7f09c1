"""What happened against what is true: words, endpoints, and how well a score tells two kinds apart.

Positions are samples of a clip at 16 kHz. Knows nothing of models, sessions and files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from voiceloop.asr.agreement import normalise
from voiceloop.audio.frames import samples
from voiceloop.bench.clips import Pause, Said
from voiceloop.languages.en import NUMBERS

MISSED_MS = 1500.0
"""An endpoint that comes later than this after the end of speech was missed."""
LAG_MS = 64.0
"""An endpoint this soon after speech has gone on was decided in the pause."""

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


# --- words -------------------------------------------------------------------------------------


def plain_words(text: str) -> list[str]:
    """The words of `text` as they are compared: without case and marks, numbers in words."""
    text = _NUMBER.sub(lambda number: f" {NUMBERS.cardinal(number[0])} ", text)
    return [word for word in map(normalise, re.split(r"[\s\u2010-\u2015-]+", text)) if word]


@dataclass(frozen=True, slots=True)
class WordErrors:
    """How a transcript differs from what was said."""

    words: int
    """Words that were said."""
    errors: int
    """The least number of words replaced, left out and added (Levenshtein 1966)."""
    tail: int
    """Words at the end that may be what was left out: the most for which an alignment with the
    least errors leaves out all."""


def word_errors(said: str, heard: str) -> WordErrors:
    """Compare a transcript with what was said."""
    true, found = plain_words(said), plain_words(heard)
    row = list(range(len(found) + 1))
    last = [row[-1]]
    for count, word in enumerate(true, 1):
        above, row = row, [count]
        for at, other in enumerate(found):
            row.append(min(above[at] + (word != other), above[at + 1] + 1, row[at] + 1))
        last.append(row[-1])
    errors = last[-1]
    tail = max(k for k in range(len(true) + 1) if last[len(true) - k] + k == errors)
    return WordErrors(len(true), errors, tail)


def word_error_rate(compared: Iterable[WordErrors]) -> float | None:
    """Errors for each word that was said; None where nothing was."""
    pairs = [(one.errors, one.words) for one in compared]
    words = sum(words for _, words in pairs)
    return sum(errors for errors, _ in pairs) / words if words else None


# --- endpoints ---------------------------------------------------------------------------------


def false_cutoffs(said: Said, endpoints: Iterable[int]) -> list[Pause | None]:
    """Where a turn was wrongly ended: the pause of each endpoint before the end of speech, None for
    one elsewhere.

    `endpoints` are the samples at which one was decided. Raises ValueError where the end of speech
    or the pauses are not known.
    """
    if said.end is None or said.pauses is None:
        raise ValueError("neither the end of speech nor the pauses are known")
    found = list[Pause | None]()
    for sample in endpoints:
        if sample < said.end:
            within = (p for p in said.pauses if p.start <= sample < p.end + samples(LAG_MS))
            found.append(next(within, None))
    return found


def endpoint_delay(said: Said, endpoints: Iterable[int]) -> int | None:
    """Samples from the end of speech to the first endpoint after it; None where it was missed.

    Raises ValueError where the end of speech is not known.
    """
    if said.end is None:
        raise ValueError("the end of speech is not known")
    delay = min((at - said.end for at in endpoints if at >= said.end), default=None)
    return None if delay is None or delay > samples(MISSED_MS) else delay


# --- scores ------------------------------------------------------------------------------------


def roc_auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Probability that a score of the first kind is above one of the second, ties counting half.

    The area under the ROC curve, by ranks (Mann and Whitney 1947; Hanley and McNeil 1982). Raises
    ValueError where either kind is missing.
    """
    if not len(positive) or not len(negative):
        raise ValueError("both kinds are needed")
    ranked = np.sort(np.asarray(negative, np.float64))
    below = np.searchsorted(ranked, positive, "left")
    not_above = np.searchsorted(ranked, positive, "right")
    return float((below + not_above).sum() / (2 * len(positive) * len(negative)))
