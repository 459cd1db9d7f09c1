"""Draws a report: as text for a terminal, and as a page.

The page is one file that needs nothing else: no scripts, fonts or links; it follows the reader's
choice of light or dark. What there is to be drawn the modules beside this one read from a record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from voiceloop.bench.record import Record, Values
from voiceloop.errors import VoiceloopError

Cell = Callable[[Values], str]
"""What stands in a column of a table, from the figures of its row."""

STYLE = Path(__file__).with_name("style.css").read_text(encoding="utf-8")


# --- what a report holds -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """Words in rows; the first column says what a row is about."""

    title: str
    header: tuple[str, ...]
    """Empty where the title says all."""
    rows: tuple[tuple[str, ...], ...]
    best: str = ""
    """The row that stands out on the page."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, which only the page shows."""

    title: str
    svg: str
    about: str = ""
    """What its marks mean."""
    key: Mapping[str, str] = field(default_factory=dict[str, str])
    """Classes of its shapes by what they stand for."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a record says, ready to be drawn. Nothing in it is computed anew."""

    title: str
    subject: Sequence[str]
    """What was measured, in sentences."""
    tables: Sequence[Table]
    machine: str
    """What the figures are figures of."""
    remarks: Sequence[str] = ()
    """What follows from the tables, in sentences."""
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    """How to read the page."""


# --- words for figures ---------------------------------------------------------------------------


def percent(value: float | None) -> str:
    """A share; a dash where there is none."""
    return "-" if value is None else f"{value:.1%}"


def number(name: str, form: str = "{}") -> Cell:
    """A figure in a format; a dash where it is none."""
    return lambda row: "-" if row[name] is None else form.format(row[name])


def spreads(name: str) -> Cell:
    """The median and the 95th percentile of a figure."""
    form = "{p50:.0f} / {p95:.0f}"
    return lambda row: "-" if row[name]["p50"] is None else form.format(**row[name])


def tabled(
    title: str, first: str, columns: Mapping[str, Cell], rows: Mapping[str, Values], best: str = ""
) -> Table:
    """A table of `columns`, in which each row has figures of its own."""
    cells = [(name, *(cell(own) for cell in columns.values())) for name, own in rows.items()]
    return Table(title, (first, *columns), tuple(cells), best)


def counted(count: int, one: str, many: str = "") -> str:
    """A number and what there are so many of."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def machine(own: Values, *others: str) -> str:
    """What figures are figures of, with `others` that belong to it."""
    load = "" if own["load"] is None else f", load {own['load']:g} at the start"
    versions = ("Python", "torch", "transformers", "voiceloop")
    parts = (
        own.get("gpu"),
        own["processor"],
        counted(own["cores"], "core"),
        f"torch on {counted(own['threads'], 'thread')}{load}",
        *others,
        own["system"],
        *(f"{name} {own[name.lower()]}" for name in versions if name.lower() in own),
    )
    return f"{', '.join(filter(None, parts))}."


def engines(settings: Values) -> str:
    """What listened and answered."""
    return (
        f"Recogniser {settings['asr']}; language model {settings['target']}, draft"
        f" {settings['draft']}; synthesizer {settings['tts']}; replies of at most"
        f" {settings['max_new_tokens']} tokens."
    )


# --- for a terminal ------------------------------------------------------------------------------


def text(report: Report) -> str:
    """The report for a terminal."""
    blocks = [
        "\n".join(report.subject),
        *map(block, report.tables),
        "\n".join(report.remarks),
        report.machine,
    ]
    return "\n\n".join(filter(None, blocks))


def block(table: Table) -> str:
    """A table for a terminal."""
    rows = [row for row in (table.header, *table.rows) if row]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*filter(None, [table.title]), *lines])


# --- as a page -----------------------------------------------------------------------------------


def html(report: Report) -> str:
    """The report as a page."""
    first, *others = report.tables
    blocks = [
        f"<h1>{escape(report.title)}</h1>",
        *_paragraphs(report.subject),
        _table(first, titled=True),
        *_listed(report.remarks),
        *map(_picture, report.pictures),
        *(f"<h2>{escape(one.title)}</h2>{_table(one)}" for one in others),
        *(["<h2>How to read this</h2>"] if report.notes else []),
        *_listed(report.notes),
        "<h2>What these are figures of</h2>",
        *_paragraphs([report.machine, "All figures are in bench.json, beside this page."]),
    ]
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>voiceloop: {escape(report.title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        "<body>\n" + "\n".join(blocks) + "\n</body>\n</html>\n"
    )


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [f"<p>{escape(text)}</p>" for text in texts if text]


def _listed(texts: Sequence[str]) -> list[str]:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return [f"<ul>{items}</ul>"] if items else []


def _table(table: Table, *, titled: bool = False) -> str:
    caption = f"<caption>{escape(table.title)}</caption>" if titled and table.title else ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    best = " class='best'"
    rows = "".join(
        f"<tr{best if row[0] == table.best else ''}>"
        f"{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in table.rows
    )
    return (
        f"<div class='wide'><table>{caption}<thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _picture(picture: Picture) -> str:
    key = "".join(
        f"<span class='key'><svg class='swatch' viewBox='0 0 12 12' aria-hidden='true'>"
        f"<rect width='12' height='12' class='{kind}'/></svg>{escape(label)}</span>"
        for label, kind in picture.key.items()
    )
    about = "".join([*_paragraphs([picture.about]), f"<p>{key}</p>" if key else ""])
    return f"<h2>{escape(picture.title)}</h2>{about}{picture.svg}"


# --- in a folder ---------------------------------------------------------------------------------


def open_folder(path: Path) -> Path:
    """Make the folder of a report, before hours of work are lost for want of it.

    Raises VoiceloopError where it cannot be made or written to.
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


def write(folder: Path, record: Record, report: Report, beside: Mapping[str, object]) -> None:
    """Write `report.html` and `bench.json` into `folder`, and `beside` them other JSON by name."""
    (folder / "report.html").write_text(html(report), encoding="utf-8")
    known = json.dumps(record.to_json(), indent=1)
    (folder / "bench.json").write_text(known + "\n", encoding="utf-8")
    for name, content in beside.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
