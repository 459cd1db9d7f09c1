"""The command `voiceloop replay`. Heavy modules are imported only when it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from voiceloop.outputs import keep, replacing
from voiceloop.settings.flags import POSITIONAL, Command, written
from voiceloop.status import engine_names, loading
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.replay.timeline import Difference, ReplayResult


class Replay(Command, frozen=True, kw_only=True):
    """Replay a recorded conversation, and show what differs."""

    examples = ("voiceloop replay recordings/2026-01-05T14-05-00",)
    docs = "docs/replay.md"

    source: Annotated[Path, POSITIONAL, written("DIR")]
    """A recording made with --record; docs/replay.md describes it. Check whether the same reports
    still lead to the same decisions."""
    realtime: bool = False
    """Hold the conversation again, in real time with real models."""
    json: bool = False
    """Print one JSON object on one line for each event and each turn."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""


def replay(command: Replay) -> int:
    """Run `voiceloop replay`. Return 1 if anything differs from the recording."""
    from voiceloop.trace.record import to_perfetto

    keep([command.source, command.config], {"--trace": command.trace})
    with ExitStack() as stack:
        trace_file = stack.enter_context(replacing(command.trace)) if command.trace else None
        played, found = _again(command) if command.realtime else _decisions(command)
        if trace_file:
            trace_file.write(json.dumps(to_perfetto(played.traces)))
    return 1 if found else 0


def _decisions(command: Replay) -> tuple[ReplayResult, list[Difference]]:
    """Compare the decisions of the core with those in a recording."""
    from voiceloop.replay.recorded import differences, shown
    from voiceloop.replay.timeline import lines

    found, recorded = differences(command.source), shown(command.source)
    same = [] if found else ["every decision is as recorded"]
    _print(command, recorded, found, [*lines(recorded, found), *same])
    return recorded, found


def _again(command: Replay) -> tuple[ReplayResult, list[Difference]]:
    """Hold a recorded conversation again, and compare the turns."""
    from voiceloop import process
    from voiceloop.replay.recorded import hold_again, origin, settings_for, shown
    from voiceloop.replay.timeline import compared, differences, different

    before, about = shown(command.source), origin(command.source)
    settings = settings_for(command.source, command)
    names = engine_names(settings)
    tell(f"voiceloop: recorded with {about.engines}", sys.stderr)
    with ExitStack() as stack:
        with loading(names, sys.stderr):
            process.configure(settings.threads)
            from voiceloop.assembly.loading import open_engines

            engines = stack.enter_context(process.settled(open_engines(settings)))
        now = hold_again(command.source, engines, settings)
    found = differences(before, now)
    _print(command, now, found, [*compared(before, now), *different(found)])
    return now, found


def _print(
    command: Replay, played: ReplayResult, found: list[Difference], lines: Iterable[str]
) -> None:
    """Print the result as JSON, or as the given lines."""
    from voiceloop.replay.timeline import records

    if command.json:
        lines = (json.dumps(record) for record in records(played, found))
    print(*lines, sep="\n")
