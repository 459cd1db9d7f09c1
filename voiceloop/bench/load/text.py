"""The record of `bench load` for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]


def text(record: Record) -> str:
    """What the record says, in lines."""
    settings, loaded, talk = record["settings"], record["loaded"], record["interruptions"]
    machine, left = record["machine"], (record["left_before"], record["left_after"])
    sent, arrived = loaded["audio_sent_s"], loaded["audio_arrived_s"]
    memory = loaded["memory_per_session_mb"]
    dropped = record["dropped"]
    return "\n".join(
        (
            f"{settings['speaking']} clients speaking, {settings['quiet']} silent and"
            f" {settings['idle']} that send nothing, on {machine['cores']} cores"
            f" ({machine['processor']}); recogniser {settings['asr']}, language model"
            f" {settings['target']}, synthesizer {settings['tts']}.",
            "",
            "endpoint to first sound           p50      p95      p99   answered  underruns",
            _answers("  one client alone", record["alone"]),
            _answers("  all of them", loaded),
            "",
            f"the way there and back adds  {_spread(record['alone']['added_ms'])} ms alone,"
            f" {_spread(loaded['added_ms'])} ms with all",
            f"audio of answers             {sent:.2f} s sent, {arrived:.2f} s arrived",
            f"understood as if alone       {_share(loaded['same_transcripts'])}",
            f"longest wait over shortest   {_number(loaded['fairness'])} (medians of clients)",
            f"server                       {loaded['cpu']:.2f} cores,"
            f" {_number(memory)} MB for each session",
            f"interruptions                {talk['interrupted']} of {talk['turns']}; last audio"
            f" after the pause {_spread(talk['pause_to_last_audio_ms'])} ms, after the decision"
            f" {_spread(talk['decision_to_last_audio_ms'])} ms",
            f"connections lost             {len(dropped)}"
            + "".join(f"\n  {reason}" for reason in sorted(set(dropped))),
            f"clients that vanished        {record['vanished']} of {settings['leavers']}; before"
            " and after them:",
            *(
                f"  {name.replace('_mb', ' (MB)'):<26} {left[0][name]} and {left[1][name]}"
                for name in left[0]
            ),
        )
    )


def _answers(name: str, found: Record) -> str:
    spread = found["endpoint_to_sound_ms"]
    figures = "".join(
        f"{'—' if value is None else f'{value:.1f} ms':>9}" for value in spread.values()
    )
    return (
        f"{name:<28}{figures}{found['answered']:>6} of {found['turns']:<3}{found['underruns']:>6}"
    )


def _spread(found: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in found.items())


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _share(value: float | None) -> str:
    return "—" if value is None else f"{value:.0%}"
