"""Shapes and axes of pictures in SVG, to be put into a page that gives them colours.

Every shape has a class and no colour of its own, so the page's style sheet decides what light and
dark look like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

WIDTH, LEFT, RIGHT = 860, 170, 130
"""Of a picture of rows: all of it, the labels before the axis, the figures behind it."""
ROW, TOP, AXIS = 34, 8, 26
BASE, TALL, SIDE = 288, 280, 60
"""Of a picture of percentages: where 0 % is, up to 100 %, and what is left of it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of a row, on the row's axis."""

    start: float
    end: float
    kind: str
    """Its class."""
    title: str


class Rows:
    """Labelled rows over one axis, and what has been drawn in them so far."""

    def __init__(
        self, labels: Sequence[str], first: float, last: float, *, figures: bool = True
    ) -> None:
        """The axis runs from `first` to `last`; without `figures` nothing stands behind it."""
        self._first, self._last = first, max(last, first + 1e-9)
        self._right = RIGHT if figures else 20
        self.bottom = TOP + len(labels) * ROW
        self.parts: list[str] = []
        step = round_step(self._last - first, 8)
        for tick in range(math.ceil(first / step), math.floor(last / step) + 1):
            self.upright(tick * step, TOP, self.bottom, "grid")
            place = self.x(tick * step), self.bottom + 18
            self.parts.append(text(*place, f"{tick * step:g}", "muted", "middle"))
        self.parts += [
            text(LEFT - 10, self.middle(row) + 4, label, anchor="end")
            for row, label in enumerate(labels)
        ]

    def x(self, value: float) -> float:
        """Where `value` is on the axis; what lies beyond one of its ends is there."""
        inside = min(max(value, self._first), self._last) - self._first
        return LEFT + (WIDTH - LEFT - self._right) * inside / (self._last - self._first)

    def middle(self, row: int) -> float:
        """The middle of a row, from the top of the picture."""
        return TOP + (row + 0.5) * ROW

    def bars(self, row: int, bars: Iterable[Bar], *, least: float = 0.0) -> None:
        """Draw `bars`, each at least `least` pixels wide."""
        for bar in bars:
            x = self.x(bar.start)
            wide = max(least, self.x(bar.end) - x)
            self.parts.append(box(x, TOP + row * ROW + 6, wide, ROW - 12, bar.kind, bar.title))

    def upright(self, value: float, top: float, bottom: float, kind: str, title: str = "") -> None:
        """Draw a line at `value`."""
        x = self.x(value)
        self.parts.append(line(x, top, x, bottom, kind, title))

    def figure(self, row: int, words: str) -> None:
        """Write `words` behind a row."""
        self.parts.append(text(WIDTH - RIGHT + 12, self.middle(row) + 4, words))

    def drawn(self, title: str) -> str:
        """The picture."""
        return picture(title, self.bottom + AXIS, self.parts)


def bars(title: str, rows: Mapping[str, Sequence[Bar]], form: str) -> str:
    """A picture of rows of bars; behind each, in the format `form`, where its last bar ends."""
    ends = [own[-1].end if own else 0.0 for own in rows.values()]
    drawn = Rows([*rows], 0.0, max(ends, default=1.0))
    for row, own in enumerate(rows.values()):
        drawn.bars(row, own)
        if own:
            drawn.figure(row, form.format(own[-1].end))
    return drawn.drawn(title)


def stacked(
    parts: Mapping[str, float], kinds: Mapping[str, str], whose: str = "", form: str = "{:.1f} ms"
) -> list[Bar]:
    """Bars for milliseconds that follow upon each other, with a class for each name."""
    found: list[Bar] = []
    at = 0.0
    for name, ms in parts.items():
        found.append(Bar(at, at + ms, kinds[name], f"{whose}{name}: {form.format(ms)}"))
        at += ms
    return found


def level(share: float) -> float:
    """How far from the top a share is, in a picture of percentages."""
    return BASE - TALL * share


def percent_axis() -> list[str]:
    """The lines of 0 to 100 %."""
    parts: list[str] = []
    for percent in range(0, 101, 25):
        y = level(percent / 100)
        parts += [line(SIDE, y, WIDTH - 30, y, "grid")]
        parts += [text(SIDE - 8, y + 4, f"{percent} %", "muted", "end")]
    return parts


def round_step(length: float, most: int) -> float:
    """A round distance of which at most `most` fit into `length`."""
    rough = max(length, 1e-9) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)


def picture(title: str, height: float, parts: Iterable[str]) -> str:
    """The SVG of all `parts`."""
    inside = "\n".join(parts)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:.0f}' role='img'"
        f" aria-label={quoteattr(title)}>\n{inside}\n</svg>\n"
    )


def box(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    """A rectangle that tells `title` to whoever points at it."""
    return (
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}'"
        f" class='{kind}'>{_title(title)}</rect>"
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str, title: str = "") -> str:
    """A straight line."""
    return (
        f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' class='{kind}'>"
        f"{_title(title)}</line>"
    )


def dot(x: float, y: float, radius: float, kind: str, title: str = "") -> str:
    """A circle."""
    return (
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius:g}' class='{kind}'>{_title(title)}</circle>"
    )


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Straight lines from point to point."""
    return f"<polyline points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in points)}' class='{kind}'/>"


def text(x: float, y: float, words: str, kind: str = "ink", anchor: str = "start") -> str:
    """Words whose baseline is at `y`."""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' class='{kind}'>"
        f"{escape(words)}</text>"
    )


def _title(words: str) -> str:
    return f"<title>{escape(words)}</title>" if words else ""
