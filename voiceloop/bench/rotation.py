"""The order in which what is compared takes its turns.

All do the same thing one directly after the other, and each time another one begins: whatever slows
the machine down for a while slows all of them down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")


def rotation(
    contestants: Sequence[T], times: int, limit_s: float = math.inf
) -> Iterator[tuple[int, list[T]]]:
    """Up to `times` numbers from 0 on, each with all `contestants` in the order of their turns.

    After the first none comes that would end later than `limit_s` if it took as long as the longest
    so far.
    """
    began, longest = perf_counter(), 0.0
    for number in range(times):
        start = perf_counter()
        if number and start - began + longest > limit_s:
            return
        first = number % len(contestants)
        yield number, [*contestants[first:], *contestants[:first]]
        longest = max(longest, perf_counter() - start)
