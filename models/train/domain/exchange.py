"""One question with its answer, and how a phrasing is drawn without leaving its split."""

from __future__ import annotations

import random
from dataclasses import dataclass

from models.train.domain.grammar import expand, held_out_carriers, held_out_pair


@dataclass(frozen=True)
class Exchange:
    """A question, its answer, and what a follow-up needs to know of them."""

    user: str
    reply: str
    kind: str
    """What was asked, for follow-ups: the fact's name, `topic`, `joke`, …"""
    key: str = ""
    tool: str = ""
    """The tool's result where `reply` follows a call."""
    call: str = ""
    """The call as the assistant writes it."""


def ask(carrier: str, value: str, rng: random.Random) -> str:
    """A sentence of `carrier` with `value` in its slot, or in its two (`5 feet|inches`)."""
    first, _, second = value.partition("|")
    text = expand(carrier, rng).replace("{x}", value)
    return text.replace("{a}", first).replace("{b}", second)


def choose(
    name: str, carriers: tuple[str, ...], values: tuple[str, ...], split: str, rng: random.Random
) -> tuple[str, str]:
    """A carrier and a value of this split."""
    out = held_out_carriers(name, carriers)
    while True:
        carrier, value = rng.choice(carriers), rng.choice(values)
        held = carrier in out or (len(values) > 4 and held_out_pair(name, carrier, value))
        if held == (split == "heldout"):
            return carrier, value


def pick(name: str, carriers: tuple[str, ...], split: str, rng: random.Random) -> str | None:
    """A carrier of this split, or None where none is held out."""
    out = held_out_carriers(name, carriers)
    pool = [carrier for carrier in carriers if (carrier in out) == (split == "heldout")]
    return rng.choice(pool) if pool else None
