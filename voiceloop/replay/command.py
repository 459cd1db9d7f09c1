"""The command `voiceloop replay`. Heavy modules are imported only when it runs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from voiceloop.config import flatten
from voiceloop.flags import POSITIONAL, Command, written
from voiceloop.outputs import keep, replacing


class Replay(Command, frozen=True, kw_only=True):
    """Play a scripted conversation on a virtual clock."""

    examples = ("voiceloop replay bug.toml", "voiceloop replay bug.toml --trace trace.json")
    docs = "docs/replay.md"

    scenario: Annotated[Path, POSITIONAL, written("SCENARIO.toml")]
    """File that says who speaks when, what each stage costs and what is expected; docs/replay.md
    describes it."""
    json: bool = False
    """Print one JSON object on one line for each event and each turn."""
    trace: Annotated[Path | None, written("T.json")] = None
    """Write a trace of every turn for ui.perfetto.dev."""
    seed: Annotated[int, written("N")] = 0
    """Seed of the order of tasks that are ready at once. It should make no difference."""


def replay(command: Replay) -> int:
    """Run `voiceloop replay`. Return 1 if a result is unexpected or the conversation does not
    end."""
    from voiceloop.replay.reading import load_scenario
    from voiceloop.replay.run import play
    from voiceloop.replay.timeline import differences, lines, records
    from voiceloop.trace.record import to_perfetto

    keep([command.scenario, command.config], {"--trace": command.trace})
    # A scenario gives the same result on every machine, so of the user's settings only flags count.
    settings = flatten(command.settings)
    flags = {key: settings[key] for key, origin in command.origins.items() if origin == "flag"}
    scenario = load_scenario(command.scenario, flags)
    with ExitStack() as stack:
        trace_file = stack.enter_context(replacing(command.trace)) if command.trace else None
        played = play(scenario, seed=command.seed)
        found = differences(played, scenario.expect)
        if command.json:
            print(*(json.dumps(record) for record in records(played, found)), sep="\n")
        else:
            print(*lines(played, found), sep="\n")
        if trace_file:
            trace_file.write(json.dumps(to_perfetto(played.traces)))
    return 1 if found or played.problem else 0
