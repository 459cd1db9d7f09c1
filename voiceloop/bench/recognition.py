"""Figures of `bench asr`, from texts and times, and what a reader sees of them.

This module decodes nothing and knows neither clips nor engines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from voiceloop.bench.report import grid
from voiceloop.bench.scoring import WordErrors, word_errors
from voiceloop.bench.summary import Table, block, machine

Record = Mapping[str, Any]


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
        "share": _share(errors, words),
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


def tables(record: Record) -> list[Table]:
    """All that the record says."""
    found = [_windows(record["windows"]), _said(record["windows"])]
    if counters := record["counters"]:
        rows = tuple((name.replace("_", " "), str(count)) for name, count in counters.items())
        found.append(Table("What short windows needed besides", ("event", "times"), rows))
    return [table for table in found if table.rows]


def subject(record: Record) -> str:
    """What was measured, in a sentence."""
    settings = record["settings"]
    return (
        f"Recogniser {settings['asr']}, seed {settings['seed']}: the configured windows"
        f" ({settings['pad_s']} s of silence) against full ones, final decodes."
    )


def text(record: Record) -> str:
    """The record for a terminal."""
    blocks = [subject(record), *map(block, tables(record)), machine(record)]
    return "\n\n".join(blocks)


def write(folder: Path, record: Record) -> None:
    """Write `report.md` and `bench.json` into `folder`."""
    blocks = [
        "# Recognition, measured",
        subject(record),
        *(f"## {table.title}\n\n{grid(table.header, table.rows)}" for table in tables(record)),
        "## What these are figures of",
        machine(record),
        "All figures: [bench.json](bench.json).",
    ]
    (folder / "report.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    (folder / "bench.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _windows(windows: Mapping[str, Any]) -> Table:
    header = ("clips and beginnings", "windows", "words differ", "share", "worst", "full", "short")
    return Table(
        "Configured windows against full ones (median ms; ratio of all time)",
        (*header, "time"),
        tuple(
            (
                name,
                str(own["windows"]),
                f"{own['words_that_differ']} of {own['words']}",
                _percent(own["share"]),
                f"{own['worst']['words']} ({own['worst']['name']})",
                f"{own['full_ms']:.0f}",
                f"{own['short_ms']:.0f}",
                f"{own['time_ratio']:.2f}",
            )
            for name, own in windows.items()
        ),
    )


def _said(windows: Mapping[str, Any]) -> Table:
    said = {name: own["said"] for name, own in windows.items() if own["said"]["words"]}
    return Table(
        "Word errors, where it is known what was said",
        ("whole clips", "clips", "words", "full windows", "configured"),
        tuple(
            (
                name,
                str(own["windows"]),
                str(own["words"]),
                *(
                    f"{own[key]} ({_percent(_share(own[key], own['words']))})"
                    for key in ("errors_full", "errors_short")
                ),
            )
            for name, own in said.items()
        ),
    )


def _ratio(compared: Sequence[Compared]) -> float:
    """Time of the fast decodes over that of the plain ones."""
    return round(sum(one.fast_s for one in compared) / sum(one.plain_s for one in compared), 3)


def _median_ms(seconds: Any) -> float:
    return round(1000 * median(seconds), 2)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
