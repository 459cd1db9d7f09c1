"""The record that every measurement returns, and statistics that all of them use.

`--json` prints the record, and a report keeps it as `bench.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from voiceloop.trace.record import percentiles

Values = Mapping[str, Any]
Statistic = Callable[..., Any]
"""A function such as `np.median`, which also takes an axis."""

RESAMPLES = 4000
"""Number of bootstrap resamples."""


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """The record of one measurement. All values can be written as JSON."""

    bench: str
    """Name of the measurement, such as `llm` or `latency`."""
    machine: Values
    """The machine, as `voiceloop.bench.machine` describes it."""
    settings: Values
    """The plan, and the settings that matter for it."""
    figures: Values
    """The results, as medians with percentiles where possible."""
    single: Values = field(default_factory=dict[str, Any])
    """Results of single runs, if they are worth keeping. The report leaves them out."""
    summary: str = ""
    """The most important figure in a sentence, for the end of the report."""

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints. Each figure is a key of the object itself."""
        about = {"bench": self.bench, "machine": self.machine, "settings": self.settings}
        return {**about, **self.figures, **self.single}


def spread(
    values: Iterable[float | None], points: Sequence[int] = (50, 95)
) -> dict[str, float | None]:
    """Return percentiles of the values that are not None, rounded to two decimal places. Without
    values each of them is None."""
    found = percentiles([value for value in values if value is not None], points)
    return {name: None if value is None else round(value, 2) for name, value in found.items()}


def share(part: int, whole: int) -> float | None:
    """Return `part / whole`, rounded to four decimal places; None if `whole` is 0."""
    return round(part / whole, 4) if whole else None


def bootstrap(
    values: npt.NDArray[np.float64], statistic: Statistic, confidence: float
) -> tuple[float, float]:
    """Return the bootstrap percentile interval of `statistic` over `values`, which must not be
    empty (Efron and Tibshirani 1993, chapter 13). The seed is fixed, so equal values give equal
    intervals."""
    from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

    if len(values) < 2:
        return float(values[0]), float(values[0])
    found = cast(Any, stats).bootstrap(
        (values,),
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)
