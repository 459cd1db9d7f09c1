"""Measures how well a score separates two kinds of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast


def roc_auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the probability that a score in `positive` is above one in `negative`.

    Ties count half. This is the area under the ROC curve, computed by ranks (Hanley and McNeil
    1982). Raises ValueError if either kind is missing.
    """
    from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

    if not len(positive) or not len(negative):
        raise ValueError("both kinds are needed")
    ranked = cast(Any, stats).mannwhitneyu(positive, negative)
    return float(ranked.statistic) / (len(positive) * len(negative))
