"""What a record of `bench load` says."""

from __future__ import annotations

from collections.abc import Mapping

from voiceloop.bench.record import Record, Values
from voiceloop.bench.report.draw import Cell, Report, Table, engines, machine, number, tabled

SPREAD: dict[str, Cell] = {name: number(name, "{:.1f}") for name in ("p50", "p95", "p99")}


def report(record: Record) -> Report:
    """What `record` says."""
    loaded = "loaded" in record.figures
    return Report(
        "The server's load, measured",
        _subject(record),
        _many(record) if loaded else _one(record),
        machine(record.machine),
        sorted(set(record.figures["dropped"])),
    )


def _subject(record: Record) -> list[str]:
    settings = record.settings
    who = (
        f"{settings['speaking']} clients speaking, {settings['quiet']} silent and"
        f" {settings['idle']} that send nothing"
        if "loaded" in record.figures
        else "One client of the server"
    )
    return [f"{who}, suite {settings['suite']}.", engines(settings)]


def _one(record: Record) -> list[Table]:
    """Of a client that was alone all the time."""
    alone: Values = record.figures["alone"]
    rows: Mapping[str, Values] = {
        "voice to voice": alone["voice_to_voice_ms"],
        "  the end of speech found": alone["found_late_ms"],
        **{f"  {name}": spread for name, spread in alone["parts_ms"].items()},
        "  there and back": alone["added_ms"],
    }
    counts = (
        ("answered", f"{alone['answered']} of {alone['turns']}"),
        ("underruns", str(alone["underruns"])),
        ("words misunderstood", f"{alone['word_errors']} of {alone['words']}"),
        ("connections lost", str(len(record.figures["dropped"]))),
    )
    title = "From the true end of speech (ms)"
    return [tabled(title, "part", SPREAD, rows), Table("", ("turns", ""), counts)]


def _many(record: Record) -> list[Table]:
    settings, found = record.settings, record.figures
    alone, loaded, talk = (found[name] for name in ("alone", "loaded", "interruptions"))
    answers = {
        name: own["endpoint_to_sound_ms"] | {"of": own}
        for name, own in (("one client alone", alone), ("all of them", loaded))
    }
    columns: dict[str, Cell] = {
        **SPREAD,
        "answered": lambda row: f"{row['of']['answered']} of {row['of']['turns']}",
        "underruns": lambda row: str(row["of"]["underruns"]),
    }
    ways = {
        "there and back, one client": alone["added_ms"],
        "there and back, all of them": loaded["added_ms"],
        "last audio after the pause": talk["pause_to_last_audio_ms"],
        "last audio after the decision": talk["decision_to_last_audio_ms"],
    }
    memory = loaded["memory_per_session_mb"]
    counts = (
        (
            "audio of answers",
            "{audio_sent_s:.2f} s sent, {audio_arrived_s:.2f} s arrived".format(**loaded),
        ),
        ("understood as if alone", _told(loaded["same_transcripts"], "{:.0%}")),
        ("longest wait over shortest", _told(loaded["fairness"], "{:.2f} (medians of clients)")),
        ("server", f"{loaded['cpu']:.2f} cores, {_told(memory, '{:.2f} MB')} for each session"),
        ("interruptions", f"{talk['interrupted']} of {talk['turns']}"),
        ("connections lost", str(len(found["dropped"]))),
        ("clients that vanished", f"{found['vanished']} of {settings['leavers']}"),
    )
    before, after = found["left_before"], found["left_after"]
    left = [(name.replace("_mb", " (MB)"), str(before[name]), str(after[name])) for name in before]
    return [
        tabled("Endpoint to first sound (ms)", "", columns, answers),
        tabled("The way, and what is heard after an interruption (ms)", "", SPREAD, ways),
        Table("", ("all of them", ""), counts),
        Table("What is left before and after clients vanish", ("", "before", "after"), tuple(left)),
    ]


def _told(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
