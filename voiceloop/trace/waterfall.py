"""One turn drawn as text: how the wait was spent, and how the stages overlapped.

The page of the bench has the same layout. This module knows neither how a turn is recorded nor the
terminal that shows the picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from voiceloop.trace.record import Lane, Mark, parts_ms, voice_to_voice_ms
from voiceloop.types import TurnTrace

_LABEL, _FIGURE = 15, 9
SHORTEST_S = 1e-6
"""Seconds below which a turn has no picture of its stages: the resolution of the record."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = " ▁▂▃▄▅▆▇█"
_STAGES: Mapping[str, tuple[Lane | None, Mark, Mark]] = {
    "user": (None, Mark.SPEECH_START, Mark.SPEECH_END),
    "endpoint wait": (None, Mark.SPEECH_END, Mark.ENDPOINT),
    "recognition": (Lane.ASR, Mark.FIRST_PARTIAL, Mark.TRANSCRIPT_FINAL),
    "prefill": (Lane.PREFILL, Mark.PREFILL_START, Mark.FIRST_BURST),
    "reply": (Lane.DECODE, Mark.FIRST_BURST, Mark.REPLY_END),
    "synthesis": (Lane.TTS, Mark.FIRST_SYNTHESIS, Mark.SYNTHESIS_END),
    "playback": (Lane.SPEAKER, Mark.FIRST_SOUND, Mark.SOUND_END),
}


def _stages(trace: TurnTrace) -> dict[str, list[tuple[float, float]]]:
    """Return when each stage worked, as pairs of times: its spans or, if it has none, the time
    between two marks."""
    found: dict[str, list[tuple[float, float]]] = {}
    for stage, (lane, begin, end) in _STAGES.items():
        found[stage] = [(span.start, span.end) for span in trace.spans if span.lane == lane]
        if not found[stage] and begin in trace.marks and end in trace.marks:
            start = trace.marks[begin]
            found[stage] = [(start, max(start, trace.marks[end]))]
    return found


def waterfall(trace: TurnTrace, width: int = 80) -> list[str]:
    """Return the lines of two pictures in text: how the wait was spent, and how the stages
    overlapped.

    In the second picture, the height of a cell is the share of the cell's time for which the stage
    worked. Lines have at most `width` characters; a `width` below 48 counts as 48.
    """
    bar = max(width, 48) - _LABEL - _FIGURE
    latency, overlap = _latency_picture(trace, bar), _overlap_picture(trace, bar)
    return [line.rstrip() for line in (*latency, *([""] if overlap else []), *overlap)]


def _row(label: str, picture: str, bar: int, ms: float | None = None) -> str:
    figure = "" if ms is None else f"{ms:.0f} ms" if ms < 10_000 else f"{ms / 1000:.1f} s"
    return f"{label:<{_LABEL}}{picture:<{bar}}{figure:>{_FIGURE}}"


def _latency_picture(trace: TurnTrace, bar: int) -> list[str]:
    whole, parts = voice_to_voice_ms(trace), parts_ms(trace)
    if whole is None or parts is None:
        why = "nobody spoke" if Mark.FIRST_SOUND in trace.marks else "no reply was heard"
        return [f"turn {trace.turn}: {trace.outcome}, {why}"]
    lines: list[str] = []
    at = 0.0
    for name, part in parts.items():
        scale = bar / whole if whole else 0.0
        lines.append(_row(name, _bar(at * scale, (at + part) * scale), bar, part))
        at += part
    return [*lines, _row("voice to voice", "╰" + "─" * (bar - 2) + "╯", bar, whole)]


def _bar(start: float, end: float) -> str:
    """Return a bar from `start` to `end`, in cells. Any length above 0 is visible."""
    if end <= start:
        return ""
    first = int(start)
    eighths = max(1, round((end - first) * 8))
    return " " * first + "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _overlap_picture(trace: TurnTrace, bar: int) -> list[str]:
    rows = _stages(trace)
    moments = [moment for own in rows.values() for stretch in own for moment in stretch]
    if not moments or max(moments) - min(moments) < SHORTEST_S:
        return []
    first, seconds = min(moments), max(moments) - min(moments)
    lines: list[str] = []
    for label, own in rows.items():
        busy = sum(end - start for start, end in own)
        cells = [
            ((start - first) / seconds * bar, (end - first) / seconds * bar) for start, end in own
        ]
        lines.append(_row(label, _activity(cells, bar), bar, busy * 1000))
    return [*lines, _row("", _axis(seconds, bar), bar)]


def _activity(stretches: Iterable[tuple[float, float]], bar: int) -> str:
    """Return a character for each cell. Its height is the share of the cell that `stretches`
    cover."""
    covered = [0.0] * bar
    for start, end in stretches:
        for cell in range(min(int(start), bar - 1), min(math.ceil(end), bar)):
            covered[cell] += max(0.0, min(end, cell + 1) - max(start, cell))
    return "".join(_LEVELS[min(8, math.ceil(share * 8 - 1e-6))] for share in covered)


def _axis(seconds: float, bar: int) -> str:
    """Return a time axis with ticks at a round distance, wide enough that labels do not touch."""
    rough = seconds / bar * 10
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    axis = ""
    for tick in range(int(seconds / step) + 1):
        label = f"╵{tick * step:.3g} s"
        at = int(tick * step / seconds * bar)
        if at + len(label) <= bar:
            axis = axis.ljust(at) + label
    return axis
