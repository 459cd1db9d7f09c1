"""Whether one record of `bench latency` is worse than another beyond noise.

Where both have clips of the same names, differences are taken clip by clip. The noise is what
drawing the clips anew would change (bootstrap percentile intervals; Efron and Tibshirani 1993,
chapter 13). That leaves out what slowed a whole run down, so times also have to change by a
tolerance, and ratios within a run say more than times. Knows neither files nor clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from voiceloop.bench.report.draw import Table, block
from voiceloop.errors import VoiceloopError

Record = Mapping[str, Any]
Takes = Mapping[str, Mapping[str, Any]]
"""What came of a clip, by mode."""
Values = npt.NDArray[np.float64]
Statistic = Callable[..., Any]

OF = "speculative"
FEWEST = 5
"""Clips without which a figure is not compared. Of so many names that are the same, clips are
compared one by one."""
RESAMPLES, CONFIDENCE = 4000, 0.99
"""Several figures are compared at once, so each of them has to be surer than usual."""

READ = {
    *("voice_to_voice_ms", "endpoint_to_sound_ms", "endpoint_delay_ms"),
    *("cut_offs", "word_errors"),
}
"""What is read of a take."""


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
    unit: str
    worse: int = 1
    """1 where more is worse, -1 where less is."""


def _of(read: Callable[[Mapping[str, Any]], Any]) -> Callable[[Takes], float | None]:
    """What `read` finds in the take of the mode `OF`; what is true counts 1."""

    def value(takes: Takes) -> float | None:
        found = read(takes[OF]) if OF in takes else None
        return None if found is None else float(found)

    return value


def _ratio(slow: str) -> Callable[[Takes], float | None]:
    def value(takes: Takes) -> float | None:
        both = [takes[mode]["voice_to_voice_ms"] for mode in (slow, OF) if mode in takes]
        return both[0] / both[1] if len(both) == 2 and all(both) else None

    return value


def _time(name: str, key: str, tolerance: Callable[[float], float]) -> Figure:
    return Figure(name, _of(lambda take: take[key]), np.median, tolerance, "ms")


def _share(name: str, read: Callable[[Mapping[str, Any]], bool]) -> Figure:
    return Figure(name, _of(read), np.mean, lambda _: 0.0, "%")


FIGURES = (
    _time("voice to voice", "voice_to_voice_ms", lambda was: max(10.0, 0.05 * was)),
    _time("endpoint to sound", "endpoint_to_sound_ms", lambda _: 10.0),
    *(
        Figure(f"{slow} ÷ {OF}", _ratio(slow), np.median, lambda was: 0.05 * was, "x", worse=-1)
        for slow in ("sequential", "streaming")
    ),
    _share("clips cut off", lambda take: take["cut_offs"] > 0),
    _share("missed endpoints", lambda take: take["endpoint_delay_ms"] is None),
    _share("not answered", lambda take: take["voice_to_voice_ms"] is None),
    Figure(
        "word errors in a clip",
        _of(lambda take: take["word_errors"]),
        np.mean,
        lambda _: 0.05,
        "",
    ),
)


@dataclass(frozen=True, slots=True)
class Change:
    """How a figure changed."""

    figure: Figure
    before: float
    after: float
    by: float
    """Where clips are paired the median or mean of their changes."""
    low: float
    high: float
    """Bounds of `by`, at `CONFIDENCE`."""
    clips: int
    paired: bool

    @property
    def verdict(self) -> Literal["worse", "better", "same"]:
        """`same` where it may be noise, or is too little to matter."""
        if abs(self.by) <= self.figure.tolerance(self.before) or self.low <= 0 <= self.high:
            return "same"
        return "worse" if self.by * self.figure.worse > 0 else "better"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two records side by side."""

    changes: tuple[Change, ...]
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
    old, new = _checked(before, "first"), _checked(after, "second")
    suites = [one["settings"]["suite"] for one in (old, new)]
    if suites[0] != suites[1]:
        raise VoiceloopError(
            f"the records are of different suites: {suites[0]} and {suites[1]}",
            "run `voiceloop bench latency` with the same --suite for both",
        )
    found = [_change(figure, _clips(old), _clips(new)) for figure in FIGURES]
    changes = tuple(change for change in found if change is not None)
    if not changes:
        raise VoiceloopError(
            f"the records have too few turns in common modes: {FEWEST} in each are needed",
            f"set --turns to {FEWEST} or more, and leave {OF} among the --modes",
        )
    return Comparison(changes, tuple(_notes(old, new)))


def _checked(record: object, which: str) -> Record:
    read = _mapping(record)
    kind, suite = read.get("bench"), _mapping(read.get("settings")).get("suite")
    if isinstance(kind, str) and kind != "latency":
        raise VoiceloopError(
            f"the {which} record is one of `bench {kind}`",
            "only records of `voiceloop bench latency` can be compared",
        )
    clips = read.get("clips")
    known = isinstance(clips, list) and all(map(_is_clip, cast(list[object], clips)))
    if kind is None or not isinstance(suite, str) or not known:
        raise VoiceloopError(
            f"the {which} file is no record of `voiceloop bench latency`",
            "give the files that --json printed or --report wrote: bench.json",
        )
    return read


def _is_clip(clip: object) -> bool:
    own = _mapping(clip)
    takes = _mapping(own.get("takes"))
    whole = {"name", "takes"} <= own.keys() and isinstance(own["name"], str)
    return whole and all(_mapping(take).keys() >= READ for take in takes.values())


def _mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a table, else an empty one."""
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def _clips(record: Record) -> dict[str, Takes]:
    return {clip["name"]: clip["takes"] for clip in record["clips"]}


def _change(figure: Figure, old: Mapping[str, Takes], new: Mapping[str, Takes]) -> Change | None:
    before = {name: figure.value(takes) for name, takes in old.items()}
    after = {name: figure.value(takes) for name, takes in new.items()}
    names = [name for name in before if None not in (before[name], after.get(name))]
    paired = len(names) >= FEWEST
    was, now = (
        np.array([one[name] for name in (names if paired else one) if one[name] is not None])
        for one in (before, after)
    )
    if min(len(was), len(now)) < FEWEST:
        return None
    statistic = figure.statistic
    low, high = interval(was, now, statistic, paired=paired)
    by = statistic(now - was) if paired else statistic(now) - statistic(was)
    return Change(
        figure,
        float(statistic(was)),
        float(statistic(now)),
        float(by),
        low,
        high,
        min(len(was), len(now)),
        paired,
    )


def interval(
    before: Values, after: Values, statistic: Statistic, *, paired: bool
) -> tuple[float, float]:
    """Bounds of the change of `statistic`, at `CONFIDENCE`; the same for the same values.

    Paired values are drawn together, and the statistic is that of their differences.
    """
    rng = np.random.default_rng(0)

    def drawn(values: Values) -> Values:
        return statistic(values[rng.integers(len(values), size=(RESAMPLES, len(values)))], axis=1)

    changes = drawn(after - before) if paired else drawn(after) - drawn(before)
    edge = (1 - CONFIDENCE) / 2
    low, high = np.quantile(changes, (edge, 1 - edge))
    return float(low), float(high)


def _notes(old: Record, new: Record) -> Iterator[str]:
    for section in ("settings", "machine"):
        was, now = old.get(section, {}), new.get(section, {})
        for name in dict.fromkeys((*was, *now)):
            if was.get(name) != now.get(name):
                yield f"{section}, {name}: {was.get(name)} → {now.get(name)}"


def text(comparison: Comparison) -> str:
    """The comparison for a terminal."""
    header = ("figure", "before → after", f"change (bounds at {CONFIDENCE:.0%})", "verdict")
    changes = block(Table("", header, tuple(map(_row, comparison.changes))))
    verdict = "Worse beyond noise." if comparison.regressed else "Nothing is worse beyond noise."
    notes = ["", "Also different:", *(f"  {note}" for note in comparison.notes)]
    return "\n".join([changes, *(notes if comparison.notes else []), "", verdict])


def _row(change: Change) -> tuple[str, ...]:
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
        f"{change.verdict}, {change.clips} clips, {'paired' if change.paired else 'not paired'}",
    )
