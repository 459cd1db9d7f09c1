"""Ids that the server makes: a word for what it is, and then chance."""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random

LENGTH = 24
"""Characters of every id that the server makes; the header of binary audio relies on it."""
LETTERS = string.ascii_letters + string.digits
_LETTER = (LETTERS * 5)[:256].encode("ascii")
"""A letter for each byte."""

NewId = Callable[[str], str]
"""Makes an id of the kind it is given: `event`, `item`, `resp`, `conv`, `sess`, `call`."""


def maker(random: Random) -> NewId:
    """A maker of ids that draws from `random`; `SystemRandom` where nobody may guess them."""

    def new(kind: str) -> str:
        # In one draw: the system's randomness is asked for every event that is sent.
        drawn = random.randbytes(LENGTH - len(kind) - 1).translate(_LETTER)
        return f"{kind}_{drawn.decode('ascii')}"

    return new
