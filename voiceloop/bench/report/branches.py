"""What a record of `bench llm --ahead` says."""

from __future__ import annotations

from voiceloop.bench.record import Record
from voiceloop.bench.report.draw import Report, Table, machine, percent


def report(record: Record) -> Report:
    """What `record` says."""
    settings, found = record.settings, record.figures
    begun, said = found["tokens_begun"], found["tokens_accepted"]
    rates = (
        ("begun ahead", percent(found["hit_rate"])),
        ("guessing the four commonest", percent(found["guessed_hit_rate"])),
        ("the four commonest with different answers", percent(found["different_hit_rate"])),
    )
    costs = (
        ("passes of the target", f"{found['passes']:.2f}"),
        ("without anything begun ahead", f"{found['plain_passes']:.2f}"),
        ("tokens begun", f"{begun:.1f}"),
        ("of them said", f"{said:.1f}"),
        ("processor time ahead", f"{found['processor_ms']:.0f} ms"),
        ("time of the models else", f"{found['models_ms']:.0f} ms"),
    )
    return Report(
        "Replies begun ahead, measured",
        [
            f"{settings['target']} after {settings['talks']} talks of two turns: at most"
            f" {settings['branches']} replies at a time to what may be said next.",
            f"Replies are those that come without: {percent(found['same_text'])}.",
        ],
        [
            Table("replies whose beginning was there", ("", "share"), rates),
            Table("a talk", ("", "mean"), costs),
        ],
        machine(record.machine),
        ["Early enough: before the last two words, and half a second before their end."],
    )
