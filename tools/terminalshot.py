"""Writes docs/images/talk-*.svg: what `voiceloop talk` shows, at two widths.

The conversation is written here; the entries and rows are made and laid out as ever.
`python -m tools.terminalshot` needs nothing but voiceloop.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console

from voiceloop.trace.record import Lane, Mark
from voiceloop.types import (
    Event,
    StageSpan,
    TokenBurst,
    Transcript,
    TurnHeard,
    TurnTrace,
    Word,
)
from voiceloop.view.activity import Activity
from voiceloop.view.rows import Status, entry, rows
from voiceloop.view.transcript import TranscriptWriter

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTHS = (80, 120)
FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""The fonts that a picture of rich's downloads."""
LEVELS = (0.001, 0.02, 0.1, 0.3, 0.4, 0.2, 0.06, 0.3)
STATUS = Status(74.0, LEVELS[-1], keys="space stop   m mute   r repeat   q quit")


def words(text: str) -> tuple[Word, ...]:
    """Return words as a recogniser gives them."""
    return tuple(Word(word, 0.0, 0.0) for word in text.split())


def turn(number: int, said: str, reply: str, heard: str, *ms: float) -> list[Event]:
    """Return the events of a turn whose parts of the latency take `ms`."""
    marks: dict[str, float] = {Mark.SPEECH_END: 0.0}
    names = (Mark.ENDPOINT, Mark.TRANSCRIPT_FINAL, Mark.FIRST_CLAUSE, Mark.FIRST_SYNTHESIS)
    for mark, part in zip((*names, Mark.FIRST_SOUND), ms, strict=True):
        marks[mark] = max(marks.values()) + part / 1000
    spans = [
        StageSpan(Lane.DECODE, "round", 0.0, 0.0, {"drafted": 4, "accepted": accepted})
        for accepted in (4, 3, 3, 2, 4)
    ]
    return [
        Transcript(number, 1, words(said), final=True),
        TokenBurst(number, (1,), reply),
        TurnTrace(
            number,
            marks,
            heard=heard,
            outcome="done" if heard == reply else "interrupted",
            spans=tuple(spans),
        ),
    ]


PARIS = "The capital of France is Paris. It lies on the river Seine."
SKY = (
    "Sunlight is a mix of all colours. The air scatters blue light much more than red light. So "
    "blue comes to us from every part of the sky."
)
EVENTS: tuple[Event, ...] = (
    *turn(1, "What is the capital of France?", PARIS, PARIS, 193, 2, 38, 42, 48),
    *turn(2, "Why is the sky blue?", SKY, " ".join(SKY.split()[:9]), 210, 4, 55, 41, 46),
    TurnHeard(3, 0, over=False),
    Transcript(3, 1, words("And how many people"), words("live in Paris")),
)


def picture(width: int) -> str:
    """Return what a terminal of `width` columns shows after `EVENTS`, as SVG."""
    console = Console(file=io.StringIO(), record=True, width=width, force_terminal=True)
    writer, activity = TranscriptWriter(), Activity()
    for event in EVENTS:
        activity.follow(event)
        for made in writer.follow(event):
            console.print(entry(made, console, styled=True), highlight=False)
    newest = writer.exchanges.live[3]
    for row in rows(activity.state, newest, LEVELS, STATUS, width, styled=True):
        console.print(row, no_wrap=True)
    return FONTS.sub("", console.export_svg(title="voiceloop talk"))


if __name__ == "__main__":
    for columns in WIDTHS:
        path = FOLDER / f"talk-{columns}.svg"
        path.write_text(picture(columns), encoding="utf-8")
        print(path.name)
