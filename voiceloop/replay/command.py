"""The command `voiceloop replay`. Heavy modules are imported only when it runs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from voiceloop.outputs import keep, replacing
from voiceloop.settings.flags import POSITIONAL, Command, written


class Replay(Command, frozen=True, kw_only=True):
    """Replay a recorded conversation, and show what differs."""

    examples = ("voiceloop replay recordings/2026-01-05T14-05-00",)
    docs = "docs/replay.md"

    source: Annotated[Path, POSITIONAL, written("DIR")]
    """A recording made with --record; docs/replay.md describes it. Check whether the same reports
    still lead to the same decisions."""
    json: bool = False
    """Print one JSON object on one line for each event and each turn."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""


def replay(command: Replay) -> int:
    """Run `voiceloop replay`. Return 1 if the core decides otherwise than in the recording."""
    from voiceloop.replay.recorded import differences, lines, records, shown
    from voiceloop.trace.record import to_perfetto

    keep([command.source, command.config], {"--trace": command.trace})
    with ExitStack() as stack:
        trace_file = stack.enter_context(replacing(command.trace)) if command.trace else None
        found, recorded = differences(command.source), shown(command.source)
        if command.json:
            told = [json.dumps(record) for record in records(recorded, found)]
        else:
            same = [] if found else ["every decision is as recorded"]
            told = [*lines(recorded, found), *same]
        print(*told, sep="\n")
        if trace_file:
            trace_file.write(json.dumps(to_perfetto(recorded.traces)))
    return 1 if found else 0
