"""A record of `bench latency` in words and tables, the same for a terminal and a page.

Everything is read from the record; nothing is computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
Cell = Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Table:
    """Words in rows; the first column says what a row is about."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def _spread(name: str) -> Cell:
    """`p50 / p95` of a figure in milliseconds."""

    def cell(mode: Mapping[str, Any]) -> str:
        p50, p95 = mode[name]["p50"], mode[name]["p95"]
        return "-" if p50 is None else f"{p50:.0f} / {p95:.0f}"

    return cell


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


COLUMNS: dict[str, Cell] = {
    "voice to voice": _spread("voice_to_voice_ms"),
    "to sound": _spread("endpoint_to_sound_ms"),
    "endpoint": _spread("endpoint_delay_ms"),
    "cut off": lambda mode: _share(mode["false_cutoffs"]),
    "missed": lambda mode: str(mode["missed_endpoints"]),
    "word errors": lambda mode: _share(mode["wer"]),
    "tails lost": lambda mode: str(mode["tail_words_lost"]),
    "wasted": lambda mode: str(mode["wasted_tokens"]),
    "CPU s": lambda mode: f"{mode['cpu_s_per_turn']:.2f}",
    "underruns": lambda mode: str(mode["underruns"]),
}
"""Figures of a mode. Latencies are `p50 / p95` in milliseconds."""


def tables(record: Record) -> list[Table]:
    """All that the record says of modes, and of what only some suites try."""
    modes = tuple(
        (name, *(cell(mode) for cell in COLUMNS.values())) for name, mode in record["modes"].items()
    )
    found = [
        Table("Modes (latency p50 / p95 in ms)", ("mode", *COLUMNS), modes),
        _compared(record),
        _keeping_up(record["modes"]),
    ]
    if endpointing := record.get("endpointing"):
        found += [_cut_offs(endpointing), _areas(endpointing)]
    if whole := record.get("people"):
        found.append(_whole(whole))
    if interruptions := record.get("interruptions"):
        found.append(_interruptions(interruptions))
    if carried := record.get("carry_over"):
        found.append(_carried(carried))
    return [table for table in found if table.rows]


def _compared(record: Record) -> Table:
    rows = [
        (name.replace("_over_", " ÷ ") + ", voice to voice p50", f"{value:.2f}")
        for name, value in record["ratios"].items()
        if value is not None
    ]
    rows += [
        (f"voice to voice with {name}", f"{value:+.0f} ms")
        for name, value in record["cost_ms_without"].items()
        if value is not None
    ]
    rows += [
        (f"CPU time, {name} ÷ streaming", f"{value:.2f}")
        for name, value in record["cpu_over_streaming"].items()
        if value is not None
    ]
    return Table("Modes compared", ("the same things said", "median"), tuple(rows))


def _cut_offs(endpointing: Record) -> Table:
    shares: Mapping[str, Mapping[str, Any]] = endpointing["cut_offs"]
    standings = tuple(next(iter(shares.values()))) if shares else ()

    def cell(own: Mapping[str, Any]) -> str:
        return f"{own['ended']} of {own['pauses']} ({_share(own['cut_off'])})"

    return Table(
        "Pauses taken for the end, by how the words before them stand",
        ("mode", *standings),
        tuple((mode, *(cell(one) for one in own.values())) for mode, own in shares.items()),
    )


def _whole(whole: Mapping[str, int]) -> Table:
    ended, pauses = whole["own_pauses_that_ended_a_turn"], whole["own_pauses"]
    return Table(
        "Recordings as they are, in the speculative mode",
        ("recordings", "own pauses that ended a turn", "with a text", "word errors"),
        (
            (
                str(whole["recordings"]),
                f"{ended} of {pauses}",
                str(whole["with_text"]),
                f"{whole['word_errors']} of {whole['words']}",
            ),
        ),
    )


def _keeping_up(modes: Mapping[str, Any]) -> Table:
    names = {"backlog_ms": "backlog", "behind_ms": "behind", "before_the_next_ms": "at the most"}
    return Table(
        "Partial transcripts: how far behind the speaker (p50 / p95 in ms)",
        ("mode", "partials", *names.values()),
        tuple(
            (
                name,
                str(own["partials"]["partials"]),
                *(_spread(key)(own["partials"]) for key in names),
            )
            for name, own in modes.items()
            if own["partials"]["partials"]
        ),
    )


def _areas(endpointing: Record) -> Table:
    auc = endpointing["auc"]
    about = f"{auc['ends']} ends, {auc['incomplete']} pauses after incomplete prefixes"
    names = {
        "p_eot": "P(end of turn)",
        "sound": "sound of the voice",
        "both": "both",
        "trailing_words": "last word alone",
    }
    return Table(
        f"Telling an end from a pause ({about})",
        ("judged by", "area under ROC"),
        tuple(
            (label, f"{auc[name]:.3f}") for name, label in names.items() if auc[name] is not None
        ),
    )


def _interruptions(interruptions: Record) -> Table:
    spreads = {
        "pause after": "trigger_ms",
        "decided after": "decided_ms",
        "silent after": "stop_ms",
    }
    counts = ("sounds", "triggered", "resumed", "interrupted", "played_to_the_end")
    kinds = {**interruptions["kinds"], "all": interruptions["all"]}
    return Table(
        "Sounds made while the reply played (p50 / p95 in ms)",
        ("kind", *(count.replace("_", " ") for count in counts), *spreads),
        tuple(
            (
                kind,
                *(str(own[count]) for count in counts),
                *(_spread(name)(own) for name in spreads.values()),
            )
            for kind, own in kinds.items()
        ),
    )


def _carried(carried: Mapping[str, Mapping[str, Any]]) -> Table:
    return Table(
        "First clauses kept where the user went on",
        ("mode, addition", "clips", "begun too early", "clause kept", "share"),
        tuple(
            (
                f"{mode}, {kind}",
                str(own["clips"]),
                str(own["begun_too_early"]),
                str(own["first_clause_kept"]),
                _share(own["share"]),
            )
            for mode, kinds in carried.items()
            for kind, own in kinds.items()
        ),
    )


def subject(record: Record) -> list[str]:
    """What was measured, in sentences."""
    settings = record["settings"]
    said = f"{settings['turns']} of {settings['turns_planned']} things said"
    where = f"Suite {settings['suite']}, seed {settings['seed']}"
    lines = [
        f"{where}: {said}, in {_count(len(record['modes']), 'mode')}.",
        f"Recogniser {settings['asr']}; language model {settings['target']}, draft"
        f" {settings['draft']}; synthesizer {settings['tts']}; endpoint {settings['endpoint']}:"
        f" {settings['complete_ms']}, {settings['hangover_ms']} or {settings['incomplete_ms']} ms;"
        f" replies of at most {settings['max_new_tokens']} tokens.",
    ]
    if settings["turns"] < settings["turns_planned"]:
        lines.append("Time was up before all had been said; --turns sets how many, however long.")
    return lines


def machine(record: Record) -> str:
    """What the figures are figures of."""
    own = record["machine"]
    load = "" if own["load"] is None else f", load {own['load']:g} at the start"
    return (
        f"{own['processor']}, {_count(own['cores'], 'core')}, torch on"
        f" {_count(own['threads'], 'thread')}{load};"
        f" {record['memory_mb']:.0f} MB at the most; {own['system']}, Python {own['python']},"
        f" torch {own['torch']}, voiceloop {own['voiceloop']}."
    )


def text(record: Record) -> str:
    """The record for a terminal."""
    blocks = ["\n".join(subject(record)), *map(block, tables(record)), machine(record)]
    return "\n\n".join(blocks)


def block(table: Table) -> str:
    """The table for a terminal."""
    rows = (table.header, *table.rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.header))]
    lines: list[Sequence[str]] = [
        [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return "\n".join([table.title, *("  ".join(line).rstrip() for line in lines)])


def _count(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"
