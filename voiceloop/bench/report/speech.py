"""What records of `bench asr` and `bench tts` say."""

from __future__ import annotations

from voiceloop.bench.record import Record, Values, share
from voiceloop.bench.report.draw import Cell, Report, Table, machine, number, percent, tabled

WINDOWS: dict[str, Cell] = {
    "windows": number("windows"),
    "words differ": lambda own: f"{own['words_that_differ']} of {own['words']}",
    "share": lambda own: percent(own["share"]),
    "worst": lambda own: f"{own['worst']['words']} ({own['worst']['name']})",
    "full": number("full_ms", "{:.0f}"),
    "short": number("short_ms", "{:.0f}"),
    "time": number("time_ratio", "{:.2f}"),
}


def _errors(key: str) -> Cell:
    return lambda own: f"{own[key]} ({percent(share(own[key], own['words']))})"


SAID: dict[str, Cell] = {
    "clips": number("windows"),
    "words": number("words"),
    "full windows": _errors("errors_full"),
    "configured": _errors("errors_short"),
}


def of_asr(record: Record) -> Report:
    """What a record of `bench asr` says."""
    settings, found = record.settings, record.figures
    said = {name: own["said"] for name, own in found["windows"].items() if own["said"]["words"]}
    counters = [(name.replace("_", " "), str(count)) for name, count in found["counters"].items()]
    tables = (
        tabled(
            "Configured windows against full ones (median ms; ratio of all time)",
            "clips and beginnings",
            WINDOWS,
            found["windows"],
        ),
        tabled("Word errors, where it is known what was said", "whole clips", SAID, said),
        Table("What short windows needed besides", ("event", "times"), tuple(counters)),
    )
    return Report(
        "Recognition, measured",
        [
            f"Recogniser {settings['asr']}, seed {settings['seed']}: the configured windows"
            f" ({settings['pad_s']} s of silence) against full ones, final decodes."
        ],
        [table for table in tables if table.rows],
        machine(record.machine, f"{found['memory_mb']:.0f} MB at the most"),
    )


def of_tts(record: Record) -> Report:
    """What a record of `bench tts` says."""
    settings, found = record.settings, record.figures
    rows = [
        ("first audio of a clause", _ms(found["first_audio_ms"])),
        ("the whole clause", _ms(found["whole_clause_ms"])),
        ("first audio / whole", f"{found['first_share']:.2f}"),
        ("real-time factor", f"{found['real_time_factor']:.3f}"),
        ("loaded after", f"{found['load_ms']} ms"),
        ("memory", f"{found['memory_mb']} MB"),
    ]
    heard: list[Values] = found.get("recognised", [])
    if heard:
        words, errors = (sum(one[name] for one in heard) for name in ("words", "errors"))
        wrong = f"{percent(share(errors, words))} of {words}, heard by {settings['asr']}"
        rows.append(("word errors", wrong))
    return Report(
        "Synthesis, measured",
        [f"{settings['tts']}, voice {settings['voice']}, {settings['rate']} Hz."],
        [Table(f"{found['clauses']} clauses", ("figure", "value"), tuple(rows))],
        machine(record.machine),
        [f"said:  {one['said']}\nheard: {one['heard']}" for one in heard if one["errors"]],
    )


def _ms(spread: Values) -> str:
    return "p50 {p50:.0f} ms, p95 {p95:.0f} ms".format(**spread)
