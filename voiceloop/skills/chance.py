"""Answers that are left to chance: coins, dice and numbers.

The seed of the context decides them, so the same context gives the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.values import SkillRequest

MOST_DICE = 10


def _coin(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return Answer(phrases.says[Random(known.seed).choice(("heads", "tails"))])


def _dice(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Roll dice. One die with six sides is rolled unless the user says something else."""
    count, sides = request.values.get("n", 1), request.values.get("sides", 6)
    if not 1 <= count <= MOST_DICE or sides < 2:
        return None
    chance = Random(known.seed)
    found = [chance.randint(1, sides) for _ in range(count)]
    numbers = phrases.listed([str(number) for number in found])
    key = "die" if count == 1 else "dice"
    return Answer(phrases.says[key].format(numbers=numbers, total=sum(found)))


def _pick(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Pick a number between two others, which count too."""
    low, high = sorted((request.values.get("a", 1), request.values.get("b", 10)))
    return Answer(phrases.says["pick"].format(number=Random(known.seed).randint(low, high)))


ANSWERS: Mapping[str, Any] = {"coin": _coin, "dice": _dice, "pick": _pick}
