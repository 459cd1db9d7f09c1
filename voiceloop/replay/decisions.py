"""Compares the decisions of the core with those in a recorded conversation.

The core gets the recorded reports at their recorded times. No sound, no model and no clock is
needed, so this takes seconds and is the same on every machine. A test takes one line:

    assert not differences(Path("bug"))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.inputs import Input
from voiceloop.recording.format import CoreCall, CoreStart, Raised, plain, state_of, tagged
from voiceloop.recording.recording import Core
from voiceloop.replay.recorded import reports
from voiceloop.replay.timeline import NOBODY, Difference
from voiceloop.turn.rules import load_rules

MOST = 5
"""Maximum number of differences that are reported. After the first one, others follow from it."""

PlainAction = Mapping[str, Mapping[str, Any]]


def differences(folder: Path, core: Core = receive) -> list[Difference]:
    """Compare the actions that `core` chooses with those of the recording in `folder`. Return the
    first `MOST` differences, at most one for each report. Raises ConfigError if the folder is no
    recording."""
    start, calls = reports(folder)
    return list(islice(compared(start, calls, core), MOST))


def compared(
    start: CoreStart, calls: Iterable[tuple[CoreCall, Input]], core: Core
) -> Iterator[Difference]:
    """Yield the first difference of each call at which `core` chooses other actions than the
    recorded ones. Stop when `core` raises an exception."""
    state = state_of(start)
    load_rules(state.settings.policy)
    begun: float | None = None
    numbers: dict[int, int] = {}
    """The numbers of the turns that the user sees, by the turns' ids."""
    for call, report in calls:
        begun = call.at if begun is None else begun
        decided = _decided(core, state, report, call.at)
        numbers |= _begun(call.actions)
        pairs = zip_longest(call.actions, decided)
        for recorded, now in islice((pair for pair in pairs if pair[0] != pair[1]), 1):
            event = getattr(report, "event", report)  # `Detected` has one
            moment = f"{call.at - begun:.3f} s, on {type(event).__name__}"
            number = numbers.get(_turn(now if recorded is None else recorded), NOBODY)
            yield Difference(number, moment, _said(recorded), _said(now))
        if decided and Raised.__name__ in decided[0]:
            return


def _decided(
    core: Core, state: ConversationState, report: Input, at: float
) -> Sequence[PlainAction]:
    """Return the actions that the core chooses, in the form of a recording."""
    try:
        actions = core(state, report, at)
    except Exception as error:  # a recording has it in place of actions
        return [plain(tagged(Raised(repr(error))))]
    return [plain(tagged(action)) for action in actions]


def _begun(actions: Sequence[PlainAction]) -> dict[int, int]:
    """Return the numbers of the turns that begin with `actions`, by the turns' ids."""
    found: dict[int, int] = {}
    for action in actions:
        match action:
            case {"Begin": {"turn": int(turn), "number": int(number)}}:
                found[turn] = number
            case _:
                pass
    return found


def _turn(action: PlainAction | None) -> int:
    """Return the id of the turn that an action is for; 0 if it is for none."""
    for fields in (action or {}).values():
        if isinstance(turn := fields.get("turn"), int):
            return turn
    return 0


def _said(action: PlainAction | None) -> str:
    """Return an action as Python code, such as `PauseReply(turn=2)`; `nothing` for None."""
    if action is None:
        return "nothing"
    return ", ".join(
        f"{name}({', '.join(f'{key}={value!r}' for key, value in fields.items())})"
        for name, fields in action.items()
    )
