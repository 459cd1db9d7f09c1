"""Which draft tokens stand, and what the target says where they end.

Coupled verification (drafter-invariant speculative decoding): the target chooses a token of its own
at every drafted position, with the noise that belongs to the position, and a draft token stands if
it is that choice. Whatever is emitted is the target's own choice, so the output does not depend on
the draft. Greedy decoding is the same rule without noise. This module knows no models.
"""

from __future__ import annotations

from collections.abc import Sequence


def coupled(drafted: Sequence[int], chosen: Sequence[int]) -> int:
    """How many of the `drafted` tokens stand.

    `chosen[i]` is the target's choice after i drafted tokens, so there is one more of them than
    was drafted; the round emits `chosen[: coupled(drafted, chosen) + 1]`.
    """
    for accepted, (guess, choice) in enumerate(zip(drafted, chosen, strict=False)):
        if guess != choice:
            return accepted
    return len(drafted)
