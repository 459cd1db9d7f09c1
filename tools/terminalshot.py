"""Writes docs/images/*.svg: what `talk`, `devices` and `doctor` show in terminals of two widths.

    python -m tools.terminalshot talk devices doctor

The conversation of `talk` is written here; its entries and rows are made and laid out as ever. The
other two are run as they are, so they show the devices and the state of this machine.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

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
from voiceloop.view.rows import Activity, Status, entry, rows
from voiceloop.view.transcript import TranscriptWriter

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTHS = (80, 120)
FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""The fonts that a picture of rich's downloads."""
ERASED = re.compile(r"[^\n]*(\r\x1b\[2K|\n(\x1b\[\?25h)?\r\x1b\[1A\x1b\[2K)")
"""What a program has written over."""
LEVELS = (0.001, 0.02, 0.1, 0.3, 0.4, 0.2, 0.06, 0.3)
STATUS = Status(74.0, LEVELS[-1], keys="space stop   m mute   t type   ? keys   q quit")


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


def conversed(width: int) -> Console:
    """Return a terminal of `width` columns after `EVENTS`."""
    console = terminal(width)
    writer, activity = TranscriptWriter(timed=False), Activity()
    for event in EVENTS:
        activity.follow(event)
        for made in writer.follow(event):
            console.print(entry(made, console), highlight=False)
    newest = writer.exchanges.live[3]
    for row in rows(activity.state, newest, LEVELS, STATUS, console):
        console.print(row, no_wrap=True)
    return console


def ran(command: str, width: int) -> Console:
    """Return a terminal of `width` columns in which a command of voiceloop's has run."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "voiceloop", command],
        env=os.environ | {"TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        written = b"".join(iter(lambda: _read(ours), b""))
    console = terminal(width)
    console.print(Text("$ ", style="dim") + Text(f"voiceloop {command}"))
    for line in ERASED.sub("", written.decode().replace("\r\n", "\n")).splitlines():
        text = Text.from_ansi(line)
        for part in text.divide(range(width, len(text), width)):
            console.print(part, no_wrap=True)
    return console


def _read(file: int) -> bytes:
    try:
        return os.read(file, 4096)
    except OSError:  # as Linux says that nobody writes any more
        return b""


def terminal(width: int) -> Console:
    """Return a terminal of `width` columns that keeps what it shows."""
    return Console(file=io.StringIO(), record=True, width=width, force_terminal=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for columns in WIDTHS:
            shown = conversed(columns) if name == "talk" else ran(name, columns)
            svg = shown.export_svg(title=f"voiceloop {name}")
            path = FOLDER / f"{name}-{columns}.svg"
            path.write_text(FONTS.sub("", svg), encoding="utf-8")
            print(path.name)
