"""Checks of the sound card: PortAudio, the default microphone and the default speaker.

The sound of the microphone is only checked for silence, and is not kept. Devices are not named,
because their names may contain names of people and serial numbers. A conversation in the browser
needs no sound card, so no finding here is worse than a warning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from voiceloop.audio.portaudio import NAMES, Kind, Opener, names, open_stream
from voiceloop.doctor.case import Case
from voiceloop.doctor.findings import Finding
from voiceloop.errors import DeviceError

LISTEN_S = 0.5
"""Seconds of sound that are read from a microphone, or written to a speaker."""
PATIENCE_S = 3.0
"""Seconds within which a device must read or write `LISTEN_S` of sound. A slower device counts as
not working."""
POLL_S = 0.02
CURE = (
    "see that the sound server runs and that no other program holds the device; "
    "voiceloop devices lists those there are"
)
ELSEWHERE = "voiceloop serve uses those of the browser"


class Moved:
    """Counts the frames that go through a stream. The stream's callback is `take` for a microphone
    and `give` for a speaker."""

    def __init__(self) -> None:
        self.frames = 0
        self.loudest = 0.0

    def take(self, pcm: Any, frames: int, time: Any, status: Any) -> None:
        """Count the frames that a microphone gives, and keep the largest amplitude."""
        del time, status
        self.loudest = max(self.loudest, float(np.abs(pcm).max(initial=0.0)))
        self.frames += frames

    def give(self, pcm: Any, frames: int, time: Any, status: Any) -> None:
        """Give silence to a speaker, and count its frames."""
        del time, status
        pcm[:] = 0
        self.frames += frames


def sound(case: Case) -> Iterator[Finding]:
    """Open the default microphone and the default speaker for a moment, and report whether each
    works."""
    del case
    for kind in NAMES:
        yield of_device(kind)


def of_device(
    kind: Kind,
    opener: Opener = open_stream,
    listed: Callable[[Kind], list[str]] = names,
    wait: Callable[[float], object] = time.sleep,
) -> Finding:
    """Return the finding for the default device of the given kind. `listed` returns the names of
    all devices of a kind; `wait` waits for some seconds."""
    title = NAMES[kind]
    try:
        there = listed(kind)
    except DeviceError as error:
        return Finding(title, "warning", error.message, f"{error.hint}; {ELSEWHERE}")
    try:
        moved, rate = _try(kind, opener, wait)
    except Exception as error:  # sounddevice's own error classes are not imported here
        why = str(error)
        for name in sorted(there, key=len, reverse=True):
            why = why.replace(f" '{name}'", "").replace(name, "it")
        return Finding(title, "warning", f"the default one does not work: {why}", CURE)
    text = f"the default one works at {rate} Hz; there {_count(len(there), title)}"
    if moved.frames < LISTEN_S * rate:
        verb = "gives no sound" if kind == "input" else "takes no sound"
        return Finding(title, "warning", f"the default one opens and {verb}", CURE)
    if kind == "input" and not moved.loudest:
        cure = "see that it is not muted, and that the system lets this terminal hear it"
        return Finding(title, "warning", "the default one gives nothing but zeros", cure)
    return Finding(title, "ok", text)


def _try(kind: Kind, opener: Opener, wait: Callable[[float], object]) -> tuple[Moved, int]:
    moved = Moved()
    callback = moved.take if kind == "input" else moved.give
    _, stream = opener(kind, None, callback, lambda: None, None)
    rate = round(stream.samplerate)
    try:
        stream.start()
        for _ in range(round(PATIENCE_S / POLL_S)):
            if moved.frames >= LISTEN_S * rate:
                break
            wait(POLL_S)
        stream.abort()
    finally:
        stream.close()
    return moved, rate


def _count(count: int, title: str) -> str:
    return f"is one {title}" if count == 1 else f"are {count} {title}s"
