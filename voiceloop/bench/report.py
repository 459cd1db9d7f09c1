"""Draws a record as text with Markdown tables, for a terminal and for a file.

Each row is a figure, under its name in the JSON and in the documentation. Each column is a mode, a
draft or whatever else was compared. The median comes before other percentiles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, cast

from voiceloop.bench.record import BenchRecord, Values
from voiceloop.errors import VoiceloopError

WIDE = 1000
"""Width for drawing tables, in characters: so large that no row is wrapped."""


def text(record: BenchRecord) -> str:
    """Draw a record: what was measured, the figures in tables, the machine, and the summary."""
    parts = [
        f"bench {record.bench}: {_listed(record.settings)}",
        *_tables(record.figures),
        _listed(record.machine),
        record.summary,
    ]
    return "\n\n".join(filter(None, parts))


def _tables(figures: Values) -> Iterator[str]:
    """Draw one table of all figures outside of groups, and then one table for each group."""
    groups = {name: value for name, value in figures.items() if _is_group(value)}
    alone = {name: value for name, value in figures.items() if name not in groups}
    if alone:
        yield table(("figure", ""), [*_flat(alone)])
    for name, group in groups.items():
        parts: dict[str, dict[str, str]] = {
            part: dict(_flat(own)) if _is_group(own) else {} for part, own in group.items()
        }
        rows = list(dict.fromkeys(row for own in parts.values() for row in own))
        if rows and all(map(_is_group, group.values())):
            cells = [(row, *(own.get(row, "-") for own in parts.values())) for row in rows]
            yield table((name, *parts), cells)
        elif group:
            yield table((name, ""), [*_flat(group)])


def _is_group(value: object) -> bool:
    return isinstance(value, Mapping) and "p50" not in value


def _are_runs(value: object) -> bool:
    return isinstance(value, list) and {*map(type, cast(list[object], value))} == {dict}


def _flat(figures: Values, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield each figure with its name. Names in a group begin with the group's name and a dot."""
    for name, value in figures.items():
        if _is_group(value):
            yield from _flat(value, f"{before}{name}.")
        elif not _are_runs(value):  # single runs are too many for a table
            yield f"{before}{name}", _cell(value)


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.4g}"
        case Mapping():
            return " / ".join(map(_cell, cast(Mapping[str, Any], value).values()))
        case list() | tuple():
            return " ".join(map(_cell, cast(Sequence[object], value)[:6])) or "-"
        case _:
            return str(value)


def _listed(values: Values) -> str:
    return ", ".join(f"{name} {_cell(one)}" for name, one in values.items() if one is not None)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Draw a table in Markdown. The first column has the names of the rows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    drawn = Table(box=box.MARKDOWN)
    for column, name in enumerate(header):
        drawn.add_column(name, justify="right" if column else "left")
    for row in rows:
        drawn.add_row(*row)
    written = StringIO()
    console = Console(file=written, width=WIDE, markup=False, emoji=False, highlight=False)
    console.print(drawn)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines() if line.strip())


def open_folder(path: Path) -> Path:
    """Make the folder of a report, and check before a long measurement that it can be written to.

    Raises VoiceloopError if it cannot be made or written to.
    """
    probe = path / ".voiceloop"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise VoiceloopError(
            f"no report can be written to {path}: {error.strerror}",
            "give --report a folder that you may write to",
        ) from error
    return path


def write(folder: Path, record: BenchRecord, beside: Mapping[str, object]) -> None:
    """Write `report.md` and `bench.json` into `folder`, and each value of `beside` as JSON into a
    file named by its key."""
    (folder / "report.md").write_text(text(record) + "\n", encoding="utf-8")
    known = json.dumps(record.to_json(), indent=1)
    (folder / "bench.json").write_text(known + "\n", encoding="utf-8")
    for name, content in beside.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
