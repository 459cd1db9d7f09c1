"""Plain SVG pictures of a record, each a file of its own without scripts, fonts or links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

Record = Mapping[str, Any]
Labels = Mapping[str, str]

WIDTH, LEFT, RIGHT = 760, 230, 100
ROW, TOP = 40, 56
FONT = "font-family='system-ui, sans-serif' font-size='13'"
COLOURS = {
    "plain": "#8db3e2",
    "speculative": "#1f5fa8",
    "hf_plain": "#c9c4bb",
    "hf_assisted": "#8c857a",
    "hf_assisted_default": "#aea79b",
    "target": "#1f5fa8",
    "draft": "#e08a1e",
    "rest": "#b9b9b9",
}
FEW = 5
"""A guess that was tested less often gets no column."""


def rate_chart(record: Record, labels: Labels) -> str:
    """Tokens per second by mode, with quartiles and the machine's own limit for plain decoding."""
    modes, floor = record["modes"], record["bandwidth"]["floor_tokens_per_s"]
    highest = max(mode["tokens_per_s_quartiles"][1] for mode in modes.values())
    # A limit far beyond all bars would make them unreadable: it is then only told.
    shown = floor < 1.6 * highest
    scale = (WIDTH - LEFT - RIGHT) / (max(highest, floor) if shown else highest)
    parts: list[str] = []
    for row, (name, mode) in enumerate(modes.items()):
        y, value = TOP + row * ROW, mode["tokens_per_s"]
        low, high = (LEFT + scale * quartile for quartile in mode["tokens_per_s_quartiles"])
        parts += [
            _text(LEFT - 10, y + 19, labels[name], "end"),
            _box(LEFT, y, scale * value, 28, COLOURS[name]),
            _line(low, y + 14, high, y + 14, "#222"),
            _text(max(LEFT + scale * value, high) + 8, y + 19, f"{value:.1f}"),
        ]
    height = TOP + len(modes) * ROW + 34
    note = f"reading the weights once a token allows {floor:.0f} tokens/s"
    if shown:
        x = LEFT + scale * floor
        parts.append(_line(x, TOP - 8, x, height - 34, "#b03030", dashed=True))
    parts.append(_text(LEFT, height - 12, note, colour="#b03030"))
    return _picture("Tokens per second", height, parts)


def acceptance_chart(record: Record, labels: Labels) -> str:
    """How often the guess at each position stood, given that those before it did."""
    shown = {
        name: [
            (share, tested)
            for share, tested in zip(
                record["modes"][name]["acceptance_by_position"],
                record["modes"][name]["tested_by_position"],
                strict=True,
            )
            if tested >= FEW
        ]
        for name in ("speculative", "hf_assisted")
    }
    places = max((len(columns) for columns in shown.values()), default=0)
    left, base, tall = 60, 300, 220
    step = min(110.0, (WIDTH - left - 30) / max(1, places))
    wide = step * 0.36
    parts = [
        part
        for level in range(0, 101, 25)
        for part in (
            _line(left, base - tall * level / 100, WIDTH - 30, base - tall * level / 100, "#ddd"),
            _text(left - 8, base - tall * level / 100 + 4, f"{level} %", "end"),
        )
    ]
    for index, (name, columns) in enumerate(shown.items()):
        x = left + 10 + index * 260
        parts += [_box(x, 38, 12, 12, COLOURS[name]), _text(x + 18, 49, labels[name])]
        for place, (share, tested) in enumerate(columns):
            x = left + step * place + step * 0.1 + index * wide
            title = f"{labels[name]}: guess {place + 1} stood in {share:.1%} of {tested}"
            parts.append(
                _box(x, base - tall * share, wide * 0.94, tall * share, COLOURS[name], title)
            )
    parts += [
        _text(left + step * (place + 0.46), base + 20, str(place + 1), "middle")
        for place in range(places)
    ]
    parts.append(_text(left, base + 44, "position of the guess in its round"))
    return _picture("Acceptance by position", base + 60, parts)


def step_chart(record: Record, labels: Labels) -> str:
    """Milliseconds of a token after the first: target, draft, everything else."""
    bars = record["steps"]["ms_per_token"]
    scale = (WIDTH - LEFT - RIGHT) / max(sum(bar.values()) for bar in bars.values())
    names = {"target": "target", "draft": "draft", "rest": "everything else"}
    parts: list[str] = []
    for index, (part, name) in enumerate(names.items()):
        x = LEFT + index * 130
        parts += [_box(x, 38, 12, 12, COLOURS[part]), _text(x + 18, 49, name)]
    for row, (mode, bar) in enumerate(bars.items()):
        x, y = float(LEFT), TOP + 12 + row * ROW
        parts.append(_text(LEFT - 10, y + 19, labels[mode], "end"))
        for part, name in names.items():
            wide = scale * bar[part]
            parts.append(_box(x, y, wide, 28, COLOURS[part], f"{name}: {bar[part]:.2f} ms"))
            x += wide
        parts.append(_text(x + 8, y + 19, f"{sum(bar.values()):.2f} ms"))
    return _picture("Time of one token", TOP + 12 + len(bars) * ROW + 10, parts)


def _picture(title: str, height: float, parts: Iterable[str]) -> str:
    inside = "\n".join(parts)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:.0f}' {FONT}"
        f" role='img'>\n<title>{escape(title)}</title>\n"
        f"<rect width='100%' height='100%' fill='#fff'/>\n"
        f"<text x='14' y='26' font-size='16' font-weight='600'>{escape(title)}</text>\n"
        f"{inside}\n</svg>\n"
    )


def _box(x: float, y: float, width: float, height: float, colour: str, title: str = "") -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    return (
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}'"
        f" fill='{colour}'>{inside}</rect>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashed: bool = False) -> str:
    dashes = " stroke-dasharray='5 4'" if dashed else ""
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'"
        f" stroke='{colour}' stroke-width='1.5'{dashes}/>"
    )


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#222") -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' fill='{colour}'>"
        f"{escape(text)}</text>"
    )
