"""Phrasings: a tiny notation for ways to say a thing, and the split that holds some of them out.

`(a|b|)` chooses one of its parts, and `{x}` is the slot. A carrier is one phrasing in this
notation; expanding it draws one sentence. Which carriers and which combinations of a carrier with
a slot value are held out is decided by a hash of their text, so it is the same in every run, for
both models, and does not move when other phrasings are added.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Sequence

CHOICE = re.compile(r"\(([^()]*)\)")


def expand(carrier: str, rng: random.Random) -> str:
    """One sentence of `carrier`, its slot still in place."""
    while match := CHOICE.search(carrier):
        carrier = (
            carrier[: match.start()] + rng.choice(match[1].split("|")) + carrier[match.end() :]
        )
    return carrier


def bucket(text: str) -> int:
    """A number from 0 to 99 that depends on `text` alone."""
    return zlib.crc32(text.encode()) % 100


def held_out_carriers(name: str, carriers: Sequence[str]) -> frozenset[str]:
    """About a tenth of `carriers`, at least one where there are five or more."""
    if len(carriers) < 5:
        return frozenset()
    ranked = sorted(carriers, key=lambda carrier: zlib.crc32(f"{name}|{carrier}".encode()))
    return frozenset(ranked[: max(1, round(len(ranked) / 10))])


def held_out_pair(name: str, carrier: str, value: str) -> bool:
    """Whether this slot value is held out with this carrier (a tenth of all pairs)."""
    return bucket(f"{name}|{carrier}|{value}") < 10


def tidy(text: str) -> str:
    """`text` with single spaces and a capital at its beginning."""
    text = " ".join(text.split()).replace(" ,", ",")
    return text[0].upper() + text[1:]
