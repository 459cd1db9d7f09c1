"""Pictures of a record of `bench latency`: SVG to be put into a page that gives them colours.

Every shape has a class and no colour of its own, so the page's style sheet decides what light and
dark look like. Nothing here knows how anything was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from voiceloop.trace import PARTS, Lane, Mark, percentiles

Record = Mapping[str, Any]

WIDTH, LEFT, RIGHT = 860, 140, 130
ROW, TOP, AXIS = 34, 8, 26
PART_CLASSES = dict(zip(PARTS, ("p1", "p2", "p3", "p4", "p5"), strict=True))
POLICY_CLASSES = {"fixed": "p5", "trailing-words": "p2", "p-eot": "p1"}
BEFORE_S, AFTER_S = 1.2, 0.3
"""How much of a turn is drawn before its user has ended, and after the reply has begun."""


def distribution(record: Record) -> str:
    """Voice-to-voice of every turn by mode, with the median and the 95th percentile."""
    rows = {mode: _answered(record, mode) for mode in record["modes"]}
    scale, parts = _axis(max((max(row) for row in rows.values() if row), default=1.0), len(rows))
    for row, (mode, times) in enumerate(rows.items()):
        y = TOP + row * ROW + ROW / 2
        parts.append(_text(LEFT - 10, y + 4, mode, anchor="end"))
        kind = "p1" if mode == "speculative" else "p4"
        # Spread by the golden ratio, so that equal times lie side by side.
        parts += [
            _dot(LEFT + scale * time, y + ((index * 0.618) % 1 - 0.5) * 16, 3, f"{kind} dot")
            for index, time in enumerate(times)
        ]
        found = percentiles(times)
        if found["p50"] is None or found["p95"] is None:
            continue
        for name, high in (("p50", 12), ("p95", 7)):
            x = LEFT + scale * (found[name] or 0.0)
            parts.append(_line(x, y - high, x, y + high, "mark", f"{mode} {name}"))
        figures = f"{found['p50']:.0f} · {found['p95']:.0f} ms"
        parts.append(_text(WIDTH - RIGHT + 12, y + 4, figures))
    return _picture("Voice to voice by mode, in milliseconds", TOP + len(rows) * ROW + AXIS, parts)


def stacked_parts(record: Record) -> str:
    """What the wait of each mode's median turn was spent on."""
    rows = {mode: _median_turn(record, mode) for mode in record["modes"]}
    whole = {mode: sum(parts.values()) for mode, parts in rows.items()}
    scale, parts = _axis(max(whole.values(), default=1.0), len(rows))
    for row, (mode, own) in enumerate(rows.items()):
        x, y = float(LEFT), TOP + row * ROW + 6
        parts.append(_text(LEFT - 10, y + 15, mode, anchor="end"))
        for name, ms in own.items():
            title = f"{mode}, {name}: {ms:.1f} ms"
            parts.append(_box(x, y, scale * ms, ROW - 12, PART_CLASSES[name], title))
            x += scale * ms
        if own:
            parts.append(_text(WIDTH - RIGHT + 12, y + 15, f"{whole[mode]:.0f} ms"))
    return _picture("Parts of the median turn by mode", TOP + len(rows) * ROW + AXIS, parts)


def trade_off(endpointing: Mapping[str, Any]) -> str:
    """Delay against cut-offs for each policy, as the silence that it waits for grows.

    Lines are pauses after incomplete prefixes, dashes all pauses; a ring is what is configured.
    """
    left, right, tall = 60, 30, 280
    wide, base = WIDTH - left - right, TOP + tall
    curves: Mapping[str, Sequence[Mapping[str, Any]]] = endpointing["curves"]
    highest = max((one["delay_ms"] or 0.0 for own in curves.values() for one in own), default=0.0)
    step = _step(highest, 8)
    longest = step * max(1, math.ceil(highest / step))
    parts: list[str] = []
    for percent in range(0, 101, 25):
        y = base - tall * percent / 100
        parts += [_line(left, y, WIDTH - right, y, "grid")]
        parts += [_text(left - 8, y + 4, f"{percent} %", "muted", "end")]
    for tick in range(round(longest / step) + 1):
        x = left + wide * tick * step / longest
        parts.append(_text(x, base + 18, f"{tick * step:g}", "muted", "middle"))
    parts.append(_text(WIDTH - right, base + 36, "mean endpoint delay, ms", "muted", "end"))
    for policy, own in curves.items():
        for figure, dash in (("cut_offs", " dashed"), ("cut_offs_incomplete", "")):
            kind = f"{POLICY_CLASSES[policy]} curve{dash}"
            known = [one for one in own if None not in (one["delay_ms"], one[figure])]
            places = {
                one["ms"]: (left + wide * one["delay_ms"] / longest, base - tall * one[figure])
                for one in known
            }
            parts.append(_path(list(places.values()), kind))
            for one in known:
                if one["ms"] == endpointing["configured_ms"][policy]:
                    title = f"{policy} as configured: {one['delay_ms']:.0f} ms, {one[figure]:.1%}"
                    parts.append(_dot(*places[one["ms"]], 5, f"{kind} ring", title))
    return _picture("False cut-offs against endpoint delay", base + 44, parts)


def turn_waterfall(trace: Mapping[str, Any]) -> str:
    """One turn that was answered: what the wait was spent on, and when each stage worked."""
    marks: Mapping[str, float] = trace["marks"]
    end, sound = marks[Mark.SPEECH_END], marks[Mark.FIRST_SOUND]
    first, last = end - BEFORE_S, sound + AFTER_S
    scale = (WIDTH - LEFT - 20) / (last - first)
    high = 26

    def x(moment: float) -> float:
        return LEFT + scale * (min(max(moment, first), last) - first)

    rows = ["wait", *(str(lane) for lane in Lane)]
    bottom = TOP + len(rows) * high
    parts: list[str] = []
    for row, name in enumerate(rows):
        y = TOP + row * high
        parts.append(_line(LEFT, y + high, WIDTH - 20, y + high, "grid"))
        parts.append(_text(LEFT - 10, y + 17, name, anchor="end"))
    step = _step((last - first) * 1000, 10)
    ticks = range(math.ceil(-BEFORE_S * 1000 / step), int((last - end) * 1000 / step) + 1)
    parts += [
        _text(x(end + tick * step / 1000), bottom + 18, f"{tick * step:g}", "muted", "middle")
        for tick in ticks
    ]
    at = end
    for name, ms in trace["parts_ms"].items():
        until = at + ms / 1000
        box = x(at), TOP + 4.0, x(until) - x(at), high - 8.0
        parts.append(_box(*box, PART_CLASSES[name], f"{name}: {ms:.1f} ms"))
        at = until
    spoke: dict[str, Any] = {
        "lane": Lane.MIC,
        "name": "speech",
        "start": marks[Mark.SPEECH_START],
        "end": end,
    }
    for span in (spoke, *trace["spans"]):
        if span["end"] >= first and span["start"] <= last:
            y = TOP + rows.index(span["lane"]) * high + 4.0
            start, wide = x(span["start"]), x(span["end"]) - x(span["start"])
            title = f"{span['name']}: {(span['end'] - span['start']) * 1000:.1f} ms"
            parts.append(_box(start, y, max(wide, 1.5), high - 8.0, "span", title))
    parts += [
        _line(x(marks[mark]), TOP, x(marks[mark]), bottom, "mark", mark)
        for mark in (Mark.SPEECH_END, Mark.ENDPOINT, Mark.FIRST_SOUND)
        if mark in marks
    ]
    return _picture("One turn, in milliseconds after the end of speech", bottom + 26, parts)


def legend(items: Mapping[str, str]) -> str:
    """A line of HTML that tells what the classes in `items`, by label, stand for."""
    return "".join(
        f"<span class='key'><svg class='swatch' viewBox='0 0 12 12' aria-hidden='true'>"
        f"<rect width='12' height='12' class='{kind}'/></svg>{escape(label)}</span>"
        for label, kind in items.items()
    )


# ---- figures


def _answered(record: Record, mode: str) -> list[float]:
    """Voice-to-voice of each clip that was answered."""
    times = (clip["takes"][mode]["voice_to_voice_ms"] for clip in record["clips"])
    return [time for time in times if time is not None]


def _median_turn(record: Record, mode: str) -> Mapping[str, float]:
    """The parts of the turn in the middle; the lower of two."""
    takes = [clip["takes"][mode] for clip in record["clips"]]
    answered = [take for take in takes if take["voice_to_voice_ms"] is not None]
    answered.sort(key=lambda take: take["voice_to_voice_ms"])
    return answered[(len(answered) - 1) // 2]["parts_ms"] if answered else {}


# ---- shapes


def _axis(highest: float, rows: int) -> tuple[float, list[str]]:
    """Pixels a unit, and the ticks below `rows` rows of bars or dots."""
    scale = (WIDTH - LEFT - RIGHT) / max(highest, 1e-9)
    step, bottom = _step(highest, 8), TOP + rows * ROW
    parts: list[str] = []
    for tick in range(int(highest / step) + 1):
        x = LEFT + scale * tick * step
        parts.append(_line(x, TOP, x, bottom, "grid"))
        parts.append(_text(x, bottom + 18, f"{tick * step:g}", "muted", "middle"))
    return scale, parts


def _step(length: float, most: int) -> float:
    """A round distance of which at most `most` fit into `length`."""
    rough = max(length, 1e-9) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)


def _picture(title: str, height: float, parts: Iterable[str]) -> str:
    inside = "\n".join(parts)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:.0f}' role='img'"
        f" aria-label='{_quoted(title)}'>\n{inside}\n</svg>\n"
    )


def _box(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    return (
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}'"
        f" class='{kind}'>{_title(title)}</rect>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, title: str = "") -> str:
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' class='{kind}'>"
        f"{_title(title)}</line>"
    )


def _dot(x: float, y: float, radius: float, kind: str, title: str = "") -> str:
    return (
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius:g}' class='{kind}'>{_title(title)}</circle>"
    )


def _path(points: Sequence[tuple[float, float]], kind: str) -> str:
    return f"<polyline points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in points)}' class='{kind}'/>"


def _text(x: float, y: float, text: str, kind: str = "ink", anchor: str = "start") -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' class='{kind}'>{escape(text)}</text>"
    )


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _quoted(text: str) -> str:
    return escape(text, {"'": "&apos;"})
