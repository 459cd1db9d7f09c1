"""How many tokens to draft in a round. This module knows neither models nor the clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median

MOST = 16
EVERY = range(MOST + 1)
"""Numbers of draft tokens that a round may have, if nothing is against it."""


class DraftLength:
    """How many tokens to draft in a round: as many as yield most tokens for their time.

    A round of k draft tokens yields 1 + a_1 + a_1 a_2 + … + a_1 … a_k tokens, where a_i is the
    chance that draft token i is accepted if those before it were (Leviathan et al. 2023, section
    3.1, for one a). It takes k steps of the draft and a pass of the target over k + 1 rows.
    Acceptances and times are those of recent rounds, which are passed in; nothing depends on which
    tokens were drafted or will be, or what is said would be distributed in another way.
    """

    FIRST_CLAUSE = 8
    """Tokens of a reply's first clause, about: until then no draft reaches further, for these
    tokens are wanted soon, not many at once."""
    PROBE = 20
    """Rounds without a draft token after which one is tried, to see whether it pays by now; more if
    it takes longer than a round without one, so that this costs a twentieth at most."""
    RECHECK = 200
    """Rounds with draft tokens after which one goes without, to see what that costs by now."""
    MEMORY = 0.95
    """What remains of an observed acceptance after each later round."""
    RECENT = 5
    """Measured times of a kind that count; their median is taken, since some are interrupted."""
    POOLED = 4.0
    """Tests of draft token i that the acceptance of all is worth, for want of its own."""

    def __init__(
        self,
        fixed: int | None,
        step_cost: float,
        row_cost: float = 0.0,
        lengths: Sequence[int] = EVERY,
    ) -> None:
        """`fixed` tokens a round, or where it is None as many as pay, of those in `lengths`.

        Costs are relative to a target pass over one row, and count until they are measured: that
        of a draft step, and that of each further row of a target pass.
        """
        self._fixed = fixed
        self._lengths = lengths
        self._costs = step_cost, row_cost
        """Of a step, and of a further row."""
        self._step_ms: deque[float] = deque(maxlen=self.RECENT)
        self._pass_ms: dict[int, deque[float]] = {}
        """By number of rows."""
        self._typical_ms: dict[int, float] = {}
        """Their medians."""
        self._accepted, self._tested = 7.0, 10.0  # what a draft is taken for until it is known
        self._accepted_at, self._tested_at = [0.0] * MOST, [0.0] * MOST
        self._rounds_without = 0
        self._rounds_with = self.RECHECK  # since a round without draft tokens: none was seen yet

    def next(self, position: int) -> int:
        """Tokens to draft for the round that begins with the reply's token `position`."""
        if self._fixed is not None:
            return self._fixed
        left = self.FIRST_CLAUSE - position
        if self._rounds_with >= self.RECHECK and left <= 0:
            return 0
        most = left if left > 0 else MOST
        step = median(self._step_ms) if self._step_ms else self._costs[0] * self._pass(1)
        tokens = self._tokens(most)
        rates = {k: tokens[k] / (k * step + self._pass(k + 1)) for k in self._lengths if k <= most}
        plain = self._pass(1)
        more = step + self._pass(2) - plain
        probing = self._rounds_without * plain >= self.PROBE * max(plain, more)
        return max(rates, key=rates.__getitem__) or int(probing)

    def observe(self, drafted: int, accepted: int, draft_ms: float, target_ms: float) -> None:
        """Learn from a round in which `accepted` of `drafted` tokens were, and what it took."""
        rows = drafted + 1
        self._pass_ms.setdefault(rows, deque(maxlen=self.RECENT)).append(target_ms)
        self._typical_ms[rows] = median(self._pass_ms[rows])
        if drafted:
            self._step_ms.append(draft_ms / drafted)
            self._rounds_without, self._rounds_with = 0, self._rounds_with + 1
        else:
            self._rounds_without, self._rounds_with = self._rounds_without + 1, 0
        if drafted or self._tested > 1:  # or rounds without draft tokens would leave nothing at all
            self._fade()
        tested = min(accepted + 1, drafted)  # what follows the first rejected one was not tested
        self._accepted += accepted
        self._tested += tested
        for index in range(min(tested, MOST)):
            self._tested_at[index] += 1
            self._accepted_at[index] += index < accepted

    def _fade(self) -> None:
        self._accepted *= self.MEMORY
        self._tested *= self.MEMORY
        self._accepted_at = [count * self.MEMORY for count in self._accepted_at]
        self._tested_at = [count * self.MEMORY for count in self._tested_at]

    def _tokens(self, most: int) -> list[float]:
        """Expected tokens of rounds of 0, 1, …, `most` draft tokens."""
        pooled = self.POOLED * self._accepted / self._tested
        totals, reached = [1.0], 1.0
        for index in range(most):
            reached *= (self._accepted_at[index] + pooled) / (self._tested_at[index] + self.POOLED)
            totals.append(totals[-1] + reached)
        return totals

    def _pass(self, rows: int) -> float:
        """Expected time of a target pass, from those over the nearest numbers of rows."""
        if not self._typical_ms:
            return self._relative(rows)
        fewer = max((seen for seen in self._typical_ms if seen <= rows), default=0)
        more = min((seen for seen in self._typical_ms if seen >= rows), default=0)
        if fewer and more:
            low, high = self._typical_ms[fewer], self._typical_ms[more]
            return low + (high - low) * (rows - fewer) / max(1, more - fewer)
        nearest = fewer or more
        return self._typical_ms[nearest] * self._relative(rows) / self._relative(nearest)

    def _relative(self, rows: int) -> float:
        """What a pass over so many rows is said to take next to one over a single row."""
        return 1 + (rows - 1) * self._costs[1]
