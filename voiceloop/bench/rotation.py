"""The order in which contestants, such as modes, work on the items of a measurement.

On each item all contestants work directly one after the other. With each new item, another
contestant begins. So a temporary slowdown of the machine slows down all contestants.
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
    """Yield the numbers 0 to `times` - 1, each with all `contestants` in the order of their turns.

    The first number always comes. Another number comes only if it would end within `limit_s`
    seconds of the start, assuming that it takes as long as the longest one so far.
    """
    began, longest = perf_counter(), 0.0
    for number in range(times):
        start = perf_counter()
        if number and start - began + longest > limit_s:
            return
        first = number % len(contestants)
        yield number, [*contestants[first:], *contestants[:first]]
        longest = max(longest, perf_counter() - start)
