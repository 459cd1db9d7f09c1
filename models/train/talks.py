"""Prints follow-ups for measurements: `python -m models.train.talks [--count N] [--seed S]`.

Each line on stdout has a question and the user's next words after its answer, with a tab between
them, both from the held-out split. The commonest follow-ups of the training split go to stderr.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter

from models.train.domain.dialogues import talk

DRAWN = 20_000
"""Number of talks in which follow-ups are counted."""


def main() -> None:
    """Print the talks."""
    parser = argparse.ArgumentParser(prog="models.train.talks", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(f"talks {options.seed}")
    for _ in range(options.count):
        print("\t".join(talk(rng, "heldout")))
    common = Counter(talk(rng, "train")[1] for _ in range(DRAWN))
    for text, times in common.most_common(8):
        print(f"{times / DRAWN:.1%} {text}", file=sys.stderr)


if __name__ == "__main__":
    main()
