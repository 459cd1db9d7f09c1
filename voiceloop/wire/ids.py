"""Ids that the server makes: the kind of object, an underscore, and random characters."""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random

LENGTH = 24
"""Number of characters in every id that the server makes. The header of binary audio relies on
it."""
LETTERS = string.ascii_letters + string.digits
_LETTER = (LETTERS * 5)[:256].encode("ascii")
"""The letter or digit that each value of a random byte becomes."""

NewId = Callable[[str], str]
"""A function that takes the kind of an object and returns a new id. Kinds are `event`, `item`,
`resp`, `conv`, `sess` and `call`."""


def maker(random: Random) -> NewId:
    """Return a function that makes ids from the bytes of `random`. Nobody can guess ids from
    `SystemRandom`."""

    def new(kind: str) -> str:
        # Draw all bytes in one call: every event that is sent needs an id.
        drawn = random.randbytes(LENGTH - len(kind) - 1).translate(_LETTER)
        return f"{kind}_{drawn.decode('ascii')}"

    return new
