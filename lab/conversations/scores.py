"""How well a score tells two kinds apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast


def roc_auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the probability that a score of the first kind is above one of the second.

    Ties count half: the area under the ROC curve, by ranks (Hanley and McNeil 1982). Raises
    ValueError where either kind is missing.
    """
    from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

    if not len(positive) or not len(negative):
        raise ValueError("both kinds are needed")
    ranked = cast(Any, stats).mannwhitneyu(positive, negative)
    return float(ranked.statistic) / (len(positive) * len(negative))
