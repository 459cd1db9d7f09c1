"""Reads the folder of a recorded conversation, which may have been cut off at any place.

The folder may come from anybody, so everything in it is checked. A fault raises a ConfigError that
names the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from voiceloop.dialogue.inputs import Input
from voiceloop.errors import ConfigError
from voiceloop.recording import format as form
from voiceloop.replay.timeline import ReplayResult
from voiceloop.trace.record import Lane, Mark
from voiceloop.types import Event, TurnTrace

HINT = "name a folder that `voiceloop talk --record` or `voiceloop serve --record` has made"
MOST_LINE = 1 << 24
"""Maximum length of a line, in bytes."""
_LANES = list(Lane)

T = TypeVar("T")


def about(folder: Path) -> form.RecordingOrigin:
    """Return how a recording was made."""
    path = folder / form.ABOUT
    return _read(form.RecordingOrigin, next(_lines(path), b""), path)


def reports(folder: Path) -> tuple[form.CoreStart, Iterator[tuple[form.CoreCall, Input]]]:
    """Return what the core knew at the beginning, and all calls of the core, each with its
    report."""
    path = folder / form.REPORTS
    lines = _lines(path)
    start = _read(form.CoreStart, next(lines, b""), path)
    if start.format != form.FORMAT:
        raise ConfigError(f"{path} has format {start.format}, not {form.FORMAT}", HINT)
    return start, (_call(line, path) for line in lines)


def shown(folder: Path) -> ReplayResult:
    """Return the events that the recorded session showed. Times are seconds since the first
    report."""
    _, calls = reports(folder)
    call, _ = next(calls, (form.CoreCall(0.0, {}, []), None))
    path = folder / form.EVENTS
    lines = _lines(path) if path.exists() else ()
    return ReplayResult(tuple(_event(line, call.at, path) for line in lines))


def since(trace: TurnTrace, begun: float) -> TurnTrace:
    """Return `trace` with times that count from `begun`. Raises ValueError for an unknown mark."""
    marks = {str(Mark(mark)): moment - begun for mark, moment in trace.marks.items()}
    spans = [replace(span, start=span.start - begun, end=span.end - begun) for span in trace.spans]
    return replace(trace, marks=marks, spans=tuple(spans))


def in_order(trace: TurnTrace) -> TurnTrace:
    """Sort the spans and counters of `trace`, since simultaneous stages have no fixed order."""
    spans = sorted(
        trace.spans, key=lambda span: (span.start, _LANES.index(Lane(span.lane)), span.end)
    )
    counters = dict(sorted(trace.counters.items()))
    return replace(trace, spans=tuple(spans), counters=counters)


def _call(line: bytes, path: Path) -> tuple[form.CoreCall, Input]:
    call = _read(form.CoreCall, line, path)
    try:
        return call, form.report_in(call.report)
    except msgspec.ValidationError as error:
        raise _unreadable(path, error) from None


def _event(line: bytes, begun: float, path: Path) -> tuple[float, Event]:
    record = _read(form.ShownEvent, line, path)
    try:
        event = form.event_in(record.event)
        if isinstance(event, TurnTrace):
            event = in_order(since(event, begun))
    except (msgspec.ValidationError, ValueError) as error:
        raise _unreadable(path, error) from None
    return record.at - begun, event


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file. If the last one lacks its line end, it was cut off, and is left
    out. Raises ConfigError for a file that is missing or cannot be read, and for a line of more
    than `MOST_LINE` bytes."""
    if not path.is_file():
        found = sorted(one.parent.name for one in path.parent.glob(f"*/{form.REPORTS}"))
        hint = f"name one of those in it, such as {path.parent / found[-1]}" if found else HINT
        raise ConfigError(f"{path.parent} is no recording: it has no {path.name}", hint)
    try:
        with path.open("rb") as file:
            while line := file.readline(MOST_LINE):
                if line.endswith(b"\n"):
                    yield line
                elif len(line) == MOST_LINE:
                    raise ConfigError(f"{path} has a line of more than {MOST_LINE} bytes", HINT)
    except OSError as error:
        hint = "check its permissions"
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint) from error


def _read(kind: type[T], line: bytes, path: Path) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Any) -> ConfigError:
    return ConfigError(f"{path} is damaged, or of another version of voiceloop: {error}", HINT)
