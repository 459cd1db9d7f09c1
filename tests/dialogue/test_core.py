"""The dialogue core, driven without any event loop by whatever could happen."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.dialogue.world import CALIBRATION, World, unthinking
from voiceloop.dialogue.conversationstate import Abilities, ConversationState
from voiceloop.dialogue.core import receive

pytestmark = pytest.mark.pure

ABILITIES = (
    Abilities(),
    Abilities(turn_model_ms=200),
    Abilities(guesses=0),
    Abilities(prefills=False, recognises=False, guesses=0),
    Abilities(full_duplex=False),
)


def converse(seed: int, steps: int) -> World:
    """A world in which so much has happened, and then all has come to its end."""
    rng = Random(seed)
    world = World(rng, abilities=rng.choice(ABILITIES))
    for _ in range(steps):
        world.step()
    world.settle()
    return world


@settings(max_examples=10 * settings().max_examples, deadline=None)  # 1,000
@given(st.integers(0, 2**32), st.integers(20, 200))
@example(606576, 84)  # results of a call come while the next turn is read
def test_whatever_happens_what_is_promised_holds(seed: int, steps: int) -> None:
    converse(seed, steps).check_settled()


@settings(max_examples=5 * settings().max_examples, deadline=None)
@given(st.integers(0, 2**32), st.integers(20, 200))
def test_where_words_alone_are_wanted_the_model_does_nothing_and_no_turn_stays(
    seed: int, steps: int
) -> None:
    rng = Random(seed)
    world = World(rng, unthinking(), rng.choice(ABILITIES))
    for _ in range(steps):
        world.step()
        assert world.model is None
    world.settle()
    world.check_settled()
    assert not world.replied


@pytest.mark.parametrize("seed", range(50))
def test_the_same_reports_give_the_same_actions(seed: int) -> None:
    world = converse(seed, 100)
    again = ConversationState(world.settings, world.abilities, {"en": CALIBRATION})
    assert [receive(again, told, now) for told, now in world.told] == world.answers


@pytest.mark.full
def test_a_hundred_thousand_conversations() -> None:
    for seed in range(100_000):
        converse(seed, 20 + seed % 181).check_settled()
