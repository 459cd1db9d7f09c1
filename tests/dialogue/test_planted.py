"""Bugs that are planted into the core, each of which the world around it finds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from tests.dialogue.test_core import ABILITIES
from tests.dialogue.world import Receive, World, unthinking
from voiceloop.dialogue import core

pytestmark = pytest.mark.pure

FOLDER = Path(core.__file__).parent
PLANTED = {
    "a guess is let out before the user has finished": (
        "modelqueue",
        "elif turn.words.final:\n",
        "else:\n",
    ),
    "a reply to other words is kept": ("modelqueue", "if text != turn.reply.text:", "if not text:"),
    "a sound that is taken back leaves the reply paused": (
        "floor",
        "    if rival := state.turn(turn.contest.rival):\n        _give",
        "    if rival := state.turn(None):\n        _give",
    ),
    "the model is given two things to do": (
        "modelqueue",
        "        doubt(state, turn, report)\n",
        "        doubt(state, turn, report)\n        state.model = None\n",
    ),
    "the newest turn is answered first": (
        "modelqueue",
        "turn = state.turns[0]\n",
        "turn = state.turns[-1]\n",
    ),
    "work is called off twice": ("floor", "if turn.phase is not Phase.STOPPING:", "if turn:"),
    "a sound pauses what it may not interrupt": (
        "floor",
        "if not (state.settings.interruptible and rival.committed):",
        "if not rival.committed:",
    ),
    "what is being stopped is worked on": (
        "modelqueue",
        "if turn.phase is Phase.STOPPING or turn.dismissed:",
        "if turn.dismissed:",
    ),
    "a reply is begun before the history is read": (
        "modelqueue",
        "comes_next = state.rewrite is None and state",
        "comes_next = state",
    ),
    "what a client is to call is called here": (
        "core",
        "if not call.client:",
        "if call:",
    ),
    "a model that waits for a tool is given something else to do": (
        "core",
        "inputs.Sounding | inputs.ToolsCalled | inputs.ToolReturned",
        "inputs.Sounding | inputs.ToolsCalled",
    ),
    "a call runs without the user's consent": (
        "consent",
        "if not call.confirm:",
        "if call:",
    ),
    "the model is never free again": ("core", "state.model if goes_on else None", "state.model"),
    "a reply waits for a sound that was nothing": (
        "floor",
        "one.undecided and one.rival == rival.id",
        "one.rival == rival.id",
    ),
    "a turn ends without any silence": (
        "endpoint",
        "if waits else config.hangover_ms\n",
        "if waits else 0\n",
    ),
    "a user who has just paused is taken for one who has not": (
        "user",
        "resumes=paused is not None and at - paused < RESUMED_S",
        "resumes=False",
    ),
    "a reply that was paused stays so": (
        "floor",
        "    state.ask(actions.ResumeReply(rival.id))\n",
        "",
    ),
    "a turn waits for ever to be asked for": (
        "modelqueue",
        "and not any(other.request.made for other in later)",
        "",
    ),
    "words are carried over to what has no room for them": (
        "modelqueue",
        "if turn.asks and turn.outcome",
        "if turn.outcome",
    ),
    "a timer that rings waits for the user to ask": (
        "modelqueue",
        "if turn.returned or turn.announces:",
        "if turn.returned:",
    ),
    "a sound does not reach the reply behind a message": (
        "user",
        "rival = next((turn for turn in state.turns if turn.committed), None)",
        "rival = state.turns[-1] if state.turns else None",
    ),
    "what a client is to bring results for is read over": (
        "conversationstate",
        "        self.unread = False",
        "        pass",
    ),
    "a history that is not wanted any more is read to its end": (
        "core",
        "                state.ask(actions.LeaveOpening())",
        "                pass",
    ),
    "a reply that failed is still being heard": (
        "core",
        '            finish(state, turn, "failed")',
        "            pass",
    ),
    "what is said is read where words alone are wanted": (
        "modelqueue",
        "    if not state.settings.thinks:\n        return _end_with_words(state, turn)\n",
        "",
    ),
    "the opening is read where words alone are wanted": (
        "modelqueue",
        "if not (state.unread and state.settings.thinks):",
        "if not state.unread:",
    ),
    "a turn stays though its words are known": (
        "modelqueue",
        "if turn.words.final is None or turn.phase is not Phase.HEARING:",
        "if turn:",
    ),
}


DECIDING = ("conversationstate", "consent", "floor", "endpoint", "modelqueue", "user", "core")
"""The modules of the core, each after those that it imports."""


@pytest.fixture
def package() -> Iterator[ModuleType]:
    """A package of another name to put the core's code in."""
    made = ModuleType("planted")
    sys.modules["planted"] = made
    yield made
    for name in ("planted", *(f"planted.{name}" for name in DECIDING)):
        sys.modules.pop(name, None)


def planted(package: ModuleType, file: str, right: str, wrong: str) -> Receive:
    """The core with one of its modules changed."""
    for name in DECIDING:
        source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        if name == file:
            assert source.count(right) == 1, "the bug is planted in one place"
            source = source.replace(right, wrong)
        for other in DECIDING:
            source = source.replace(f"voiceloop.dialogue.{other} ", f"planted.{other} ")
        source = source.replace(
            TABLE, f"from voiceloop.dialogue import actions, inputs\n{OWN_TABLE}"
        )
        module = sys.modules[f"planted.{name}"] = ModuleType(f"planted.{name}")
        exec(compile(source, f"planted/{name}", "exec"), module.__dict__)
        setattr(package, name, module)
    return sys.modules["planted.core"].receive


TABLE = "from voiceloop.dialogue import actions, inputs, modelqueue, user\n"
OWN_TABLE = "from planted import modelqueue, user\n"


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, package: ModuleType) -> None:
    receive = planted(package, *PLANTED[bug])
    kind = sys.modules["planted.conversationstate"].ConversationState
    with pytest.raises(AssertionError):
        for seed in range(300):
            rng = Random(seed)
            if seed % 4 == 3:
                world = World(rng, unthinking(), rng.choice(ABILITIES), receive=receive, kind=kind)
            else:
                world = World(rng, abilities=rng.choice(ABILITIES), receive=receive, kind=kind)
            for _ in range(20 + seed % 181):
                world.step()
            world.settle()
            world.check_settled()
