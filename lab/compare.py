"""Tells whether the second of two records of `bench latency` is worse than the first, beyond noise.

    python -m lab.compare before.json after.json

The exit status is 1 if it is worse, 0 if it is not, and 2 if the files cannot be compared. A record
is what `voiceloop bench latency --json` printed, or bench.json of a report.

Differences are taken between clips of the same names. The noise is estimated by resampling the
clips. Resampling does not show it if the machine was slower in one whole run. So a time must also
change by more than a tolerance. Ratios within one run are more reliable than times.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
import numpy as np
from msgspec import Struct

from voiceloop.bench.command import need_extra
from voiceloop.bench.record import Statistic, bootstrap, table
from voiceloop.errors import ConfigError, VoiceloopError
from voiceloop.settings.flags import POSITIONAL, Command, parse, written
from voiceloop.terminal import tell

OF = "speculative"
"""The mode whose figures are compared."""
FEWEST = 5
"""A figure is compared if both records have it for at least this many clips with equal names."""
CONFIDENCE = 0.99
"""Confidence of the intervals. It is high because many figures are compared."""


class Compare(Command, frozen=True, kw_only=True):
    """Compare two records of latency."""

    before: Annotated[Path, POSITIONAL, written("A.json")]
    """The first record."""
    after: Annotated[Path, POSITIONAL, written("B.json")]
    """The second record."""


# --- the parts of a record that are read ---------------------------------------------------------


class TakeRead(Struct):
    """The results of one clip in one mode from which the compared figures are computed."""

    voice_to_voice_ms: float | None
    endpoint_to_sound_ms: float | None
    endpoint_delay_ms: float | None
    cut_offs: int
    word_errors: int | None


Takes = Mapping[str, TakeRead]
"""The results of one clip, by the name of the mode."""


class ClipRead(Struct):
    """The parts of a clip's record that are compared."""

    name: str
    takes: dict[str, TakeRead]


class SettingsRead(Struct):
    """The settings that must be equal in both records."""

    suite: str


class LatencyRead(Struct):
    """The parts of a record of `bench latency` that are compared."""

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


# --- figures and their comparison ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is compared between two records."""

    name: str
    value: Callable[[Takes], float | None]
    """Computes the figure of one clip from its results by mode; None if the clip has none."""
    statistic: Statistic
    """`np.median` or `np.mean`, taken over the clips."""
    tolerance: Callable[[float], float]
    """Maps the figure of the first record to the largest change that is ignored."""
    unit: str = "ms"
    worse: int = 1
    """1 if a larger figure is worse, -1 if a smaller one is."""


def _of(read: Callable[[TakeRead], float | None]) -> Callable[[Takes], float | None]:
    """Return a function that applies `read` to the take in mode `OF`; None if there is no take."""
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
    """The median or mean of the changes of single clips."""
    low: float
    """Lower bound of `by` at `CONFIDENCE`."""
    high: float
    """Upper bound of `by` at `CONFIDENCE`."""
    clips: int

    @property
    def verdict(self) -> Literal["worse", "better", "same"]:
        """The verdict on the change: `same` if it may be noise or is within the tolerance."""
        if abs(self.by) <= self.figure.tolerance(self.before) or self.low <= 0 <= self.high:
            return "same"
        return "worse" if self.by * self.figure.worse > 0 else "better"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two records."""

    changes: tuple[FigureChange, ...]
    notes: tuple[str, ...]
    """Other differences, in the settings and the machine."""

    @property
    def regressed(self) -> bool:
        """True if a figure is worse beyond noise."""
        return any(change.verdict == "worse" for change in self.changes)


def compare(before: object, after: object) -> Comparison:
    """Compare two records, as `json` reads them.

    Raises VoiceloopError if one is no record of `bench latency`, if their suites differ, or if no
    figure can be compared.
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


def load(path: Path) -> object:
    """Return the JSON of a file.

    Raises ConfigError if the file cannot be read, and VoiceloopError if it holds no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", "check its name and permissions"
        ) from error
    except ValueError as error:  # no JSON, or not UTF-8
        raise VoiceloopError(
            f"{path} holds no JSON", "give what `voiceloop bench latency --json` printed"
        ) from error


def main(argv: Sequence[str]) -> int:
    """Run the command line. Return the exit status."""
    try:
        command = parse({"run": Compare}, ["run", *argv])
        if not isinstance(command, Compare):
            print(__doc__)
            return 0
        need_extra()
        comparison = compare(load(command.before), load(command.after))
    except VoiceloopError as error:
        print(f"{error.message}\nhint: {error.hint}", file=sys.stderr)
        return 2
    for line in text(comparison).split("\n"):
        tell(line)
    return 1 if comparison.regressed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
