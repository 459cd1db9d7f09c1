"""The summary of a conversation that is over."""

from __future__ import annotations

from collections.abc import Sequence

from voiceloop.trace.record import percentiles, voice_to_voice_ms
from voiceloop.types import TurnTrace


def summary(traces: Sequence[TurnTrace], seconds: float) -> list[str]:
    """Return the lines of a summary of a conversation that lasted `seconds`. Abandoned turns do not
    count. Without other turns there are no lines."""
    turns = [trace for trace in traces if trace.outcome != "abandoned"]
    if not turns:
        return []
    interrupted = sum(trace.outcome == "interrupted" for trace in turns)
    lines = [
        f"{_count(len(turns), 'turn')} in {seconds / 60:.1f} minutes, "
        f"{_count(interrupted, 'interruption')}"
    ]
    latencies = [ms for trace in turns if (ms := voice_to_voice_ms(trace)) is not None]
    if latencies:
        found = percentiles(latencies, (50, 90))
        lines.append(f"voice to voice: median {found['p50']:.0f} ms, p90 {found['p90']:.0f} ms")
    if drafted := sum(trace.counters.get("drafted", 0) for trace in turns):
        accepted = sum(trace.counters.get("accepted", 0) for trace in turns)
        lines.append(f"draft tokens accepted: {accepted / drafted:.0%}")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
