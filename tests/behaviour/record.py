"""Record what generated conversations do, or show it.

    python -m tests.behaviour.record          writes recorded.txt
    python -m tests.behaviour.record 42       prints all that comes of the conversation of seed 42

A conversation in which the order of tasks that are ready at the same moment makes a difference is
left out: it promises nothing.
"""

from __future__ import annotations

import logging
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path

from tests.behaviour.generated import case
from tests.behaviour.observed import digest, observed

RECORDED = Path(__file__).with_name("recorded.txt")
CONVERSATIONS = 2000
SCHEDULES = (0, 7)
"""Seeds of the scheduler."""
AT_ONCE = 100


def recorded() -> dict[int, str]:
    """The digest of each conversation, by its seed."""
    lines = (line.split() for line in RECORDED.read_text(encoding="utf-8").splitlines())
    return {int(seed): known for seed, known in lines}


def digested(seed: int) -> str | None:
    """The digest of a conversation; None where it depends on the schedule."""
    logging.disable(logging.CRITICAL)  # failures are scripted
    found = {digest(observed(case(seed), seed=schedule)) for schedule in SCHEDULES}
    return found.pop() if len(found) == 1 else None


def main() -> None:
    """Do what the command line says."""
    if sys.argv[1:]:
        print(*observed(case(int(sys.argv[1]))), sep="\n")
        return
    known: dict[int, str] = {}
    with ProcessPoolExecutor() as pool:
        for first in count(0, AT_ONCE):
            seeds = range(first, first + AT_ONCE)
            for seed, found in zip(seeds, pool.map(digested, seeds), strict=True):
                if found is not None and len(known) < CONVERSATIONS:
                    known[seed] = found
            if len(known) == CONVERSATIONS:
                break
    lines = [f"{seed} {found}\n" for seed, found in known.items()]
    RECORDED.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
