"""Tells whether one record of `bench latency` is worse than another beyond noise.

Differences are taken between clips of the same names. The noise is what drawing the clips anew
would change (bootstrap percentile intervals; Efron and Tibshirani 1993, chapter 13). That leaves
out what slowed a whole run down, so times also have to change by a tolerance, and ratios within a
run say more than times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from voiceloop.bench.report import table
from voiceloop.errors import VoiceloopError

Values = npt.NDArray[np.float64]
Statistic = Callable[..., Any]

OF = "speculative"
FEWEST = 5
"""Clips that both records have a figure of, without which it is not compared."""
RESAMPLES, CONFIDENCE = 4000, 0.99
"""Several figures are compared at once, so each of them has to be surer than usual."""


# --- what is read of a record --------------------------------------------------------------------


class TakeRead(Struct):
    """What came of a clip in one mode, as far as it is compared."""

    voice_to_voice_ms: float | None
    endpoint_to_sound_ms: float | None
    endpoint_delay_ms: float | None
    cut_offs: int
    word_errors: int | None


Takes = Mapping[str, TakeRead]
"""What came of a clip, by mode."""


class ClipRead(Struct):
    """A clip, as far as it is compared."""

    name: str
    takes: dict[str, TakeRead]


class SettingsRead(Struct):
    """The settings that have to be the same."""

    suite: str


class LatencyRead(Struct):
    """A record of `bench latency`, as far as it is compared."""

    settings: SettingsRead
    clips: list[ClipRead]


def _read(record: object, which: str) -> LatencyRead:
    kind = cast(Mapping[str, object], record).get("bench") if isinstance(record, dict) else None
    if isinstance(kind, str) and kind != "latency":
        raise VoiceloopError(
            f"the {which} record is one of `bench {kind}`",
            "only records of `voiceloop bench latency` can be compared",
        )
    try:
        return msgspec.convert(record, LatencyRead)
    except msgspec.ValidationError as error:
        raise VoiceloopError(
            f"the {which} file is no record of `voiceloop bench latency`",
            "give the files that --json printed or --report wrote: bench.json",
        ) from error


# --- what is compared ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that can get worse."""

    name: str
    value: Callable[[Takes], float | None]
    """Of a clip, from its takes by mode; None where it has none."""
    statistic: Statistic
    """`np.median` or `np.mean`."""
    tolerance: Callable[[float], float]
    """By how much it may change, from what it was."""
    unit: str = "ms"
    worse: int = 1
    """1 where more is worse, -1 where less is."""


def _of(read: Callable[[TakeRead], float | None]) -> Callable[[Takes], float | None]:
    """Return what reads the take of the mode `OF`."""
    return lambda takes: read(takes[OF]) if OF in takes else None


def _ratio(slow: str) -> Callable[[Takes], float | None]:
    def value(takes: Takes) -> float | None:
        both = [takes[mode].voice_to_voice_ms for mode in (slow, OF) if mode in takes]
        return both[0] / both[1] if len(both) == 2 and both[0] and both[1] else None

    return value


WAIT = _of(lambda take: take.voice_to_voice_ms)
TO_SOUND = _of(lambda take: take.endpoint_to_sound_ms)
CUT_OFF = _of(lambda take: take.cut_offs > 0)
MISSED = _of(lambda take: take.endpoint_delay_ms is None)
SILENT = _of(lambda take: take.voice_to_voice_ms is None)
WRONG = _of(lambda take: take.word_errors)
FIGURES = (
    Figure("voice to voice", WAIT, np.median, lambda was: max(10, was / 20)),
    Figure("endpoint to sound", TO_SOUND, np.median, lambda _: 10),
    *(
        Figure(f"{slow} ÷ {OF}", _ratio(slow), np.median, lambda was: was / 20, "x", worse=-1)
        for slow in ("sequential", "streaming")
    ),
    Figure("clips cut off", CUT_OFF, np.mean, lambda _: 0, "%"),
    Figure("missed endpoints", MISSED, np.mean, lambda _: 0, "%"),
    Figure("not answered", SILENT, np.mean, lambda _: 0, "%"),
    Figure("word errors in a clip", WRONG, np.mean, lambda _: 0.05, ""),
)


@dataclass(frozen=True, slots=True)
class FigureChange:
    """How a figure changed."""

    figure: Figure
    before: float
    after: float
    by: float
    """The median or mean of the changes of clips."""
    low: float
    high: float
    """Bounds of `by`, at `CONFIDENCE`."""
    clips: int

    @property
    def verdict(self) -> Literal["worse", "better", "same"]:
        """`same` where it may be noise, or is too little to matter."""
        if abs(self.by) <= self.figure.tolerance(self.before) or self.low <= 0 <= self.high:
            return "same"
        return "worse" if self.by * self.figure.worse > 0 else "better"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two records side by side."""

    changes: tuple[FigureChange, ...]
    notes: tuple[str, ...]
    """What else differs: settings and machine."""

    @property
    def regressed(self) -> bool:
        """Something is worse beyond noise."""
        return any(change.verdict == "worse" for change in self.changes)


def compare(before: object, after: object) -> Comparison:
    """Compare two records as `json` reads them.

    Raises VoiceloopError where one is no record of `bench latency`, where they are of different
    suites, and where nothing in them can be compared.
    """
    old, new = _read(before, "first"), _read(after, "second")
    suites = [one.settings.suite for one in (old, new)]
    if suites[0] != suites[1]:
        raise VoiceloopError(
            f"the records are of different suites: {suites[0]} and {suites[1]}",
            "run `voiceloop bench latency` with the same --suite for both",
        )
    found = [_change(figure, old, new) for figure in FIGURES]
    changes = tuple(change for change in found if change is not None)
    if not changes:
        raise VoiceloopError(
            f"the records have too few clips and modes in common: {FEWEST} clips are needed",
            f"set --turns to {FEWEST} or more, and leave {OF} among the --modes",
        )
    return Comparison(changes, tuple(_notes(before, after)))


def _change(figure: Figure, old: LatencyRead, new: LatencyRead) -> FigureChange | None:
    before, after = (
        {clip.name: value for clip in one.clips if (value := figure.value(clip.takes)) is not None}
        for one in (old, new)
    )
    names = [name for name in before if name in after]
    if len(names) < FEWEST:
        return None
    was, now = (np.array([one[name] for name in names], np.float64) for one in (before, after))
    statistic, by = figure.statistic, now - was
    bounds = bootstrap(by, statistic, CONFIDENCE)
    return FigureChange(
        figure,
        float(statistic(was)),
        float(statistic(now)),
        float(statistic(by)),
        *bounds,
        len(names),
    )


def bootstrap(values: Values, statistic: Statistic, confidence: float) -> tuple[float, float]:
    """Return the percentile interval of a statistic over draws of `values`; always the same one."""
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


def _notes(old: Any, new: Any) -> Iterator[str]:
    for section in ("settings", "machine"):
        was, now = old.get(section, {}), new.get(section, {})
        for name in dict.fromkeys((*was, *now)):
            if was.get(name) != now.get(name):
                yield f"{section}, {name}: {was.get(name)} → {now.get(name)}"


def text(comparison: Comparison) -> str:
    """Draw the comparison for a terminal."""
    header = ("figure", "before → after", f"change (bounds at {CONFIDENCE:.0%})", "verdict")
    changes = table(header, [*map(_row, comparison.changes)])
    verdict = "Worse beyond noise." if comparison.regressed else "Nothing is worse beyond noise."
    notes = ["", "Also different:", *(f"  {note}" for note in comparison.notes)]
    return "\n".join([changes, *(notes if comparison.notes else []), "", verdict])


def _row(change: FigureChange) -> tuple[str, ...]:
    unit = change.figure.unit
    scale, form = (100, ".1f") if unit == "%" else (1, ".2f" if unit == "x" else ".0f")
    before, after = (format(scale * value, form) for value in (change.before, change.after))
    by, low, high = (
        format(scale * value, "+" + form) for value in (change.by, change.low, change.high)
    )
    return (
        change.figure.name,
        f"{before} → {after} {unit}".rstrip(),
        f"{by} ({low} to {high})",
        f"{change.verdict}, {change.clips} clips",
    )
