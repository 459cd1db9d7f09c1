"""Bugs that are planted into the core, each of which the world around it finds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from tests.dialogue.test_core import ABILITIES
from tests.dialogue.world import World, unthinking
from voiceloop.dialogue import core

pytestmark = pytest.mark.pure

PLANTED = {
    "a guess is let out before the user has finished": ("elif turn.words.final:\n", "else:\n"),
    "a reply to other words is kept": ("if text != turn.reply.text:", "if not text:"),
    "a sound that is taken back leaves the reply paused": (
        "        if rival := self.turn(turn.contest.rival):\n            self._give",
        "        if rival := self.turn(None):\n            self._give",
    ),
    "the model is given two things to do": (
        "            self._learn_from_reply(turn, told)\n",
        "            self._learn_from_reply(turn, told)\n            self._model = None\n",
    ),
    "the newest turn is answered first": (
        "turn = self.state.turns[0]",
        "turn = self.state.turns[-1]",
    ),
    "work is called off twice": ("if turn.phase is not Phase.STOPPING:", "if turn:"),
    "a sound pauses what it may not interrupt": (
        "if not (self.settings.interruptible and rival.committed):",
        "if not rival.committed:",
    ),
    "what is being stopped is worked on": (
        "if turn.phase is Phase.STOPPING or turn.dismissed:",
        "if turn.dismissed:",
    ),
    "a reply is begun before the history is read": (
        "comes_next = self._rewrite is None and self",
        "comes_next = self",
    ),
    "what a client is to call is called here": (
        "for one in told.calls if not one.client",
        "for one in told.calls",
    ),
    "the model is never free again": ("self._model if goes_on else None", "self._model"),
    "a reply waits for a sound that was nothing": (
        "one.undecided and one.rival == rival.id",
        "one.rival == rival.id",
    ),
    "a turn ends without any silence": (
        "if waits else policy.hangover_ms\n",
        "if waits else 0\n",
    ),
    "a user who has just paused is taken for one who has not": (
        "resumes=resumes(at, self.state.fell_silent)",
        "resumes=False",
    ),
    "a reply that was paused stays so": ("        self._do(actions.Resume(rival.id))\n", ""),
    "a turn waits for ever to be asked for": (
        "and not any(other.request.made for other in later)",
        "",
    ),
    "words are carried over to what has no room for them": (
        "if other.asks and other.outcome",
        "if other.outcome",
    ),
    "a timer that rings waits for the user to ask": (
        "if turn.returned or turn.announces:",
        "if turn.returned:",
    ),
    "a sound does not reach the reply behind a message": (
        "rival = next((turn for turn in self.state.turns if turn.committed), None)",
        "rival = self.state.turns[-1] if self.state.turns else None",
    ),
    "what a client is to bring results for is read over": (
        "turns=turns, begun=turn.id, unread=False)",
        "turns=turns, begun=turn.id)",
    ),
    "a history that is not wanted any more is read to its end": (
        "                    self._do(actions.LeaveOpening())",
        "                    pass",
    ),
    "a reply that failed is still being heard": (
        '                self._finish(turn, "failed")',
        "                pass",
    ),
    "what is said is read where words alone are wanted": (
        "        if not self.settings.thinks:\n            return self._end_with_words(turn)\n",
        "",
    ),
    "the opening is read where words alone are wanted": (
        "if not (self.state.unread and self.settings.thinks):",
        "if not self.state.unread:",
    ),
    "a turn stays though its words are known": (
        "if turn.words.final is None or turn.phase is not Phase.HEARING:",
        "if turn:",
    ),
}


@pytest.fixture
def module() -> Iterator[ModuleType]:
    """A module of another name to put the core's code in."""
    made = ModuleType("planted")
    sys.modules["planted"] = made  # where dataclasses look for it
    yield made
    del sys.modules["planted"]


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, module: ModuleType) -> None:
    right, wrong = PLANTED[bug]
    source = Path(core.__file__).read_text(encoding="utf-8")
    assert source.count(right) == 1, "the bug is planted in one place"
    exec(compile(source.replace(right, wrong), "planted", "exec"), module.__dict__)
    with pytest.raises(AssertionError):
        for seed in range(300):
            rng = Random(seed)
            world = World(rng, abilities=rng.choice(ABILITIES), kind=module.Core)
            if seed % 4 == 3:
                world = World(rng, unthinking(), rng.choice(ABILITIES), kind=module.Core)
            for _ in range(20 + seed % 181):
                world.step()
            world.settle()
            world.check_settled()
