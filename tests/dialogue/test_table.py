"""The table of docs/architecture.md says what a turn can become, and nothing else happens."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from tests.dialogue.world import World
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.core import receive
from voiceloop.dialogue.state import Phase

pytestmark = pytest.mark.pure

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
Change = tuple[str, str]
RARE = {
    ("hearing", "guessing", "Recognised"),
    ("hearing", "guessing", "Respond"),
    ("hearing", "guessing", "TurnEnded"),
    ("hearing", "committed", "TurnEnded"),
    ("guessing", "stopping", "Cancel"),
    ("committed", "done", "Replied"),
    ("contested", "speaking", "Frame"),
}
"""What so few conversations may not bring about, or where every reply sounds."""


def table() -> dict[Change, set[str]]:
    """What the page lists: reports by change of phase."""
    listed: dict[Change, set[str]] = defaultdict(set)
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        phases = {"—", "any", *(phase.value for phase in Phase)}
        if len(cells) != 4 or not set(re.split(", ", cells[0])) <= phases:
            continue
        sources = [phase.value for phase in Phase] if cells[0] == "any" else cells[0].split(", ")
        for source in sources:
            listed[source, cells[1]] |= set(cells[2].split(", "))
    return listed


class Watched(World):
    """Takes down how the phases of turns change."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seen: dict[Change, set[str]] = defaultdict(set)
        self.receive = self.watched

    def watched(
        self, state: ConversationState, told: inputs.Input, now: float
    ) -> list[actions.Action]:
        before = {turn.id: turn.phase.value for turn in state.turns}
        asked = receive(state, told, now)
        after = {turn.id: turn.phase.value for turn in state.turns}
        name = type(told.event if isinstance(told, inputs.Detected) else told).__name__
        for turn in before.keys() | after.keys():
            change = before.get(turn, "—"), after.get(turn, "done")
            if change[0] != change[1]:
                self.seen[change].add(name)
        return asked


def test_the_table_tells_all_that_can_become_of_a_turn() -> None:
    seen: dict[Change, set[str]] = defaultdict(set)
    for seed in range(600):
        world = Watched(Random(seed))
        for _ in range(20 + seed % 181):
            world.step()
        world.settle()
        for change, names in world.seen.items():
            seen[change] |= names
    listed = table()
    unlisted = {change: names - listed[change] for change, names in seen.items()}
    assert not {change: names for change, names in unlisted.items() if names}
    never = {
        (*change, name)
        for change, names in listed.items()
        for name in names - seen.get(change, set())
        if name != "Failed"  # of any phase
    }
    assert never <= RARE, "the page lists what does not happen"
