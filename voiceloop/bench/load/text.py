"""The record of `bench load` for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]

PERCENTILES = f"{'p50':>11}{'p95':>11}{'p99':>11}"


def text(record: Record) -> str:
    """What the record says, in lines."""
    return _one(record) if "loaded" not in record else _many(record)


def _one(record: Record) -> str:
    """Of a client that was alone all the time."""
    settings, alone, machine = record["settings"], record["alone"], record["machine"]
    rows = {
        "voice to voice": alone["voice_to_voice_ms"],
        "  the end of speech found": alone["found_late_ms"],
        **{f"  {name}": spread for name, spread in alone["parts_ms"].items()},
        "  there and back": alone["added_ms"],
    }
    dropped = sorted(set(record["dropped"]))
    return "\n".join(
        (
            f"One client of the server, suite {settings['suite']}, on {machine['cores']} cores"
            f" ({machine['processor']}); recogniser {settings['asr']}, language model"
            f" {settings['target']}, synthesizer {settings['tts']}; replies of at most"
            f" {settings['max_new_tokens']} tokens.",
            "",
            f"{'from the true end of speech':<28}{PERCENTILES}",
            *(f"{name:<28}{_milliseconds(spread)}" for name, spread in rows.items()),
            "",
            f"{alone['answered']} of {alone['turns']} answered, {alone['underruns']} underruns,"
            f" {alone['word_errors']} of {alone['words']} words misunderstood,"
            f" {len(record['dropped'])} connections lost",
            *(f"  {reason}" for reason in dropped),
        )
    )


def _many(record: Record) -> str:
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
            f"{'endpoint to first sound':<28}{PERCENTILES}   answered  underruns",
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
    figures = _milliseconds(found["endpoint_to_sound_ms"])
    return (
        f"{name:<28}{figures}{found['answered']:>6} of {found['turns']:<3}{found['underruns']:>6}"
    )


def _milliseconds(spread: Mapping[str, float | None]) -> str:
    return "".join(
        f"{'—' if value is None else f'{value:.1f} ms':>11}" for value in spread.values()
    )


def _spread(found: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in found.items())


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _share(value: float | None) -> str:
    return "—" if value is None else f"{value:.0%}"
