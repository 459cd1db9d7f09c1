"""The command `voiceloop replay`. Heavy modules are imported only when it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from voiceloop.config import flatten
from voiceloop.errors import ConfigError
from voiceloop.flags import POSITIONAL, Command, written
from voiceloop.outputs import keep, replacing
from voiceloop.status import engine_names, loading
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.replay.run import ReplayResult
    from voiceloop.replay.timeline import Difference


class Replay(Command, frozen=True, kw_only=True):
    """Play a scripted conversation, or replay a recorded one."""

    examples = ("voiceloop replay bug.toml", "voiceloop replay recordings/2026-01-05T14-05-00")
    docs = "docs/replay.md"

    source: Annotated[Path, POSITIONAL, written("SCENARIO.toml|DIR")]
    """A scenario, or a recording made with --record; docs/replay.md describes both. With a
    recording, check whether the same reports still lead to the same decisions."""
    realtime: bool = False
    """Hold a recorded conversation again, in real time with real models."""
    json: bool = False
    """Print one JSON object on one line for each event and each turn."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    seed: Annotated[int, written("N")] = 0
    """Seed that shuffles those tasks of a scenario that are ready at the same moment. The result
    should not depend on it."""


def replay(command: Replay) -> int:
    """Run `voiceloop replay`. Return 1 if a result is unexpected or the conversation does not
    end."""
    from voiceloop.trace.record import to_perfetto

    keep([command.source, command.config], {"--trace": command.trace})
    with ExitStack() as stack:
        trace_file = stack.enter_context(replacing(command.trace)) if command.trace else None
        if not command.source.is_dir():
            played, found = _scenario(command)
        elif command.realtime:
            played, found = _again(command)
        else:
            played, found = _decisions(command)
        if trace_file:
            trace_file.write(json.dumps(to_perfetto(played.traces)))
    return 1 if found or played.problem else 0


def _scenario(command: Replay) -> tuple[ReplayResult, list[Difference]]:
    """Play a scenario."""
    from voiceloop.replay.reading import load_scenario
    from voiceloop.replay.run import play
    from voiceloop.replay.timeline import differences, lines

    if command.realtime:
        raise ConfigError("a scenario has no sound to play", "leave out --realtime")
    # A scenario gives the same result on every machine, so of the user's settings only flags count.
    settings = flatten(command.settings)
    flags = {key: settings[key] for key, origin in command.origins.items() if origin == "flag"}
    scenario = load_scenario(command.source, flags)
    played = play(scenario, seed=command.seed)
    found = differences(played, scenario.expect)
    _print(command, played, found, lines(played, found))
    return played, found


def _decisions(command: Replay) -> tuple[ReplayResult, list[Difference]]:
    """Compare the decisions of the core with those in a recording."""
    from voiceloop.replay.decisions import differences
    from voiceloop.replay.recorded import shown
    from voiceloop.replay.timeline import lines

    found, recorded = differences(command.source), shown(command.source)
    same = [] if found else ["every decision is as recorded"]
    _print(command, recorded, found, [*lines(recorded, found), *same])
    return recorded, found


def _again(command: Replay) -> tuple[ReplayResult, list[Difference]]:
    """Hold a recorded conversation again, and compare the turns."""
    from voiceloop import startup
    from voiceloop.replay import realtime, recorded
    from voiceloop.replay.timeline import compared, differences, different

    before, about = recorded.shown(command.source), recorded.about(command.source)
    settings = realtime.settings_for(command.source, command)
    names = engine_names(settings)
    tell(f"voiceloop: recorded with {about.engines}", sys.stderr)
    with ExitStack() as stack:
        with loading(names, sys.stderr):
            startup.configure(settings.threads)
            from voiceloop.loading import open_engines

            engines = stack.enter_context(startup.settled(open_engines(settings)))
        now = realtime.hold_again(command.source, engines, settings)
    found = differences(now, realtime.expectation(before))
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
