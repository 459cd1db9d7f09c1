"""Fixed sets of questions by which a model is examined, drawn once from a split."""

from __future__ import annotations

import random
from functools import cache

from models.train.domain.exchange import ask
from models.train.domain.facts import ALL_FACTS, WEIGHTS
from models.train.domain.grammar import held_out_carriers, tidy
from models.train.domain.sources import draw_fact, draw_outside, draw_tale, draw_tool, draw_topic
from models.train.domain.talk import LIMITS, NO_DEVICES, OFFLINE

DECLINES = frozenset((LIMITS, OFFLINE, NO_DEVICES))
"""The exact replies that decline."""


@cache
def factual(split: str = "heldout", count: int = 200) -> list[tuple[str, str]]:
    """Distinct factual questions of a split with their only right reply."""
    rng = random.Random(f"factual {split}")
    found: dict[str, str] = {}
    while len(found) < count:
        exchange = draw_fact(rng, split)
        found[tidy(exchange.user)] = exchange.reply
    return list(found.items())


@cache
def questions(split: str = "heldout", count: int = 50) -> list[str]:
    """Distinct questions that stand alone, for about a third of which the reply is longer."""
    rng = random.Random(f"questions {split}")
    found: dict[str, None] = {}
    while len(found) < count:
        draws = (draw_fact, draw_topic, draw_tale, draw_tool)
        draw = rng.choices(draws, (0.55, 0.25, 0.12, 0.08))[0]
        found[tidy(draw(rng, split).user)] = None
    return list(found)


@cache
def contrast_pairs(count: int = 50) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """The same held-out sentence about two different things."""
    rng = random.Random("contrast")
    pairs: list[tuple[tuple[str, str], tuple[str, str]]] = []
    while len(pairs) < count:
        fact = rng.choices(ALL_FACTS, WEIGHTS)[0]
        carrier = sorted(held_out_carriers(fact.name, fact.carriers))[0]
        one, two = rng.sample(sorted(fact.rows), 2)
        if fact.rows[one] == fact.rows[two] or one.partition("|")[2] != two.partition("|")[2]:
            continue
        asked = [(tidy(ask(carrier, value, rng)), fact.rows[value]) for value in (one, two)]
        pairs.append((asked[0], asked[1]))
    return pairs


@cache
def out_of_domain(split: str = "heldout", count: int = 50) -> list[str]:
    """Distinct questions that are to be declined."""
    rng = random.Random(f"outside {split}")
    found: dict[str, None] = {}
    while len(found) < count:
        found[tidy(draw_outside(rng, split).user)] = None
    return list(found)
