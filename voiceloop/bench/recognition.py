"""Figures of `bench asr`, from texts and times.

This module decodes nothing and knows neither clips nor engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from voiceloop.bench.record import share
from voiceloop.bench.scoring import WordErrors, word_errors


@dataclass(frozen=True, slots=True)
class Compared:
    """One window, decoded in two ways."""

    name: str
    text: str | None
    """What is said in it, where that is known."""
    plain: str
    """What the model alone makes of it."""
    fast: str
    plain_s: float
    fast_s: float

    @property
    def differ(self) -> WordErrors:
        """Words in which the two differ, the plain ones taken for what was said."""
        return word_errors(self.plain, self.fast)


def figures(compared: Sequence[Compared]) -> dict[str, Any]:
    """Words and times of windows, which there must be, decoded in configured and full windows."""
    differ = [(one.differ, one) for one in compared]
    worst, worst_window = max(differ, key=lambda pair: pair[0].errors)
    words = sum(own.words for own, _ in differ)
    errors = sum(own.errors for own, _ in differ)
    known = [one for one in compared if one.text is not None]
    said = [
        (word_errors(one.text or "", one.plain), word_errors(one.text or "", one.fast))
        for one in known
    ]
    return {
        "windows": len(compared),
        "words": words,
        "words_that_differ": errors,
        "share": share(errors, words),
        "worst": {
            "name": worst_window.name,
            "words": worst.errors,
            "full": worst_window.plain,
            "short": worst_window.fast,
        },
        "texts_that_differ": sum(own.errors > 0 for own, _ in differ),
        "full_ms": _median_ms(one.plain_s for one in compared),
        "short_ms": _median_ms(one.fast_s for one in compared),
        "time_ratio": _ratio(compared),
        "said": {
            "windows": len(known),
            "words": sum(full.words for full, _ in said),
            "errors_full": sum(full.errors for full, _ in said),
            "errors_short": sum(short.errors for _, short in said),
        },
    }


def _ratio(compared: Sequence[Compared]) -> float:
    """Time of the fast decodes over that of the plain ones."""
    return round(sum(one.fast_s for one in compared) / sum(one.plain_s for one in compared), 3)


def _median_ms(seconds: Iterable[float]) -> float:
    return round(1000 * median(seconds), 2)
