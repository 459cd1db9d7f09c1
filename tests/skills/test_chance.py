"""Coins, dice and numbers: what is left to chance, by a seed that is passed in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.asked import CODES, NOW, told
from voiceloop.skills.answer import answer
from voiceloop.skills.known import SkillContext

pytestmark = pytest.mark.pure

COIN = {"en": "Flip a coin.", "de": "Wirf eine Münze.", "es": "Lanza una moneda."}
SIDES = {"en": {"Heads.", "Tails."}, "de": {"Kopf.", "Zahl."}, "es": {"Cara.", "Cruz."}}
PICK = {
    "en": "Pick a number between {} and {}.",
    "de": "Nenn mir eine Zahl zwischen {} und {}.",
    "es": "Elige un número entre {} y {}.",
}
seeds = st.integers(0, 2**32 - 1)


def said(text: str, seed: int, code: str = "en") -> str:
    return told(text, code, SkillContext(NOW, seed=seed)).text


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


@pytest.mark.parametrize("code", CODES)
def test_a_coin_has_two_sides_and_falls_on_both(code: str) -> None:
    assert {said(COIN[code], seed, code) for seed in range(30)} == SIDES[code]


@given(st.sampled_from(["Flip a coin.", "Roll two dice.", "Pick a random number."]), seeds)
def test_the_same_seed_gives_the_same_luck_at_any_time(text: str, seed: int) -> None:
    later = SkillContext(NOW.replace(second=59), seed=seed, heard="Well.")
    assert told(text, "en", later).text == said(text, seed)


@given(st.sampled_from(CODES), st.integers(0, 1000), st.integers(0, 1000), seeds)
def test_a_number_is_between_those_that_were_said(code: str, a: int, b: int, seed: int) -> None:
    (found,) = numbers(said(PICK[code].format(a, b), seed, code))
    assert min(a, b) <= found <= max(a, b)


def test_every_number_may_be_picked_and_every_side_of_a_die_falls() -> None:
    assert {numbers(said("Pick a number from 3 to 5.", n))[0] for n in range(50)} == {3, 4, 5}
    assert {numbers(said("Roll a die.", n))[0] for n in range(99)} == {1, 2, 3, 4, 5, 6}


@given(st.integers(2, 10), seeds)
def test_dice_are_told_with_their_total(count: int, seed: int) -> None:
    *each, total = numbers(said(f"Roll {count} dice.", seed))
    assert len(each) == count and sum(each) == total and {*each} <= {*range(1, 7)}


@pytest.mark.parametrize("text", ["Roll 0 dice.", "Roll 99 dice.", "Roll a 1 sided die."])
def test_dice_that_nobody_has_are_left_to_the_model(text: str) -> None:
    assert answer(text, "en", SkillContext(NOW)) is None
