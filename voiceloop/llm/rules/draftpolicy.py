"""Choose how many draft tokens a round has, and which tree they form.

This module knows no models and no clock.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from voiceloop.llm.rules.verify import ROOT, Tree, chain

MOST = 16
EVERY = range(MOST + 1)
"""The numbers of draft tokens that a round may have by default."""
ALIKE: Mapping[int, float] = {1: 1.0, MOST + 1: 1.0}
"""Costs of passes whose time does not depend on their rows."""
WIDEST = 4
"""Maximum number of draft tokens that are tried for one position."""
Path = tuple[int, ...]
"""A node of a tree, written as ranks: those of its ancestors from depth 0 on, then its own."""


class DraftPolicy:
    """Chooses the tree of draft tokens with which a round is expected to give the most tokens per
    unit of time.

    A round of k draft tokens yields 1 + a_1 + a_1 a_2 + … + a_1 … a_k tokens. Here a_i is the
    probability that draft token i is accepted if all before it were (Leviathan et al. 2023, section
    3.1, where all a_i are equal). The round takes k steps of the draft and a pass of the target
    over k + 1 rows.

    In a tree, a position may have several draft tokens: the draft's first choice, its second choice
    and so on. Each choice has another acceptance probability. A node adds the product of the
    probabilities on its path to the expected number of tokens. The draft takes one step for each
    level of the tree (Chen et al. 2024, Sequoia, arXiv 2402.12374, section 3.1).

    Acceptances and times are learnt from the recent rounds that `observe` is called with. Nothing
    depends on the draft tokens themselves: that would change the distribution of the reply.
    """

    FIRST_CLAUSE = 8
    """The approximate number of tokens in a reply's first clause. Until the first clause is
    decided, no draft goes beyond its end, because the user waits for it."""
    PROBE = 30
    """Number of rounds without draft tokens after which the best chain of draft tokens is tried, to
    see whether drafting pays by now. If it adds more time than a round without draft tokens takes,
    more rounds pass first. So probing takes at most a thirtieth of the time."""
    SELDOM = 8
    """The factor by which the wait for a probe is longer where drafting is hopeless."""
    HOPELESS = 0.7
    """Drafting is hopeless where the best chain is expected to give less than this share of the
    tokens that rounds without draft tokens give in the same time, even if the draft took none. Bad
    luck in a few rounds does not lower the expectation as far."""
    RECHECK = 200
    """Number of rounds with draft tokens after which one round has none, to measure again how long
    a round without draft tokens takes."""
    KEPT = 8
    """Number of rounds after which the best tree is searched for again. It is not searched for in
    each round, because that takes time. Without branches, the best chain is also searched for again
    after each round with draft tokens."""

    def __init__(
        self,
        fixed: int | None,
        step_cost: float,
        row_costs: Mapping[int, float] = ALIKE,
        lengths: Sequence[int] = EVERY,
        *,
        branches: bool = False,
        acceptance: float = 0.7,
    ) -> None:
        """Draft a chain of `fixed` tokens in each round; if `fixed` is None, draft the best tree.

        The best tree is a chain whose length is in `lengths` or, with `branches`, a tree of any
        size. Costs are relative to a target pass over one row: `step_cost` of a draft step, and
        `row_costs` of a target pass by its number of rows. The times of rounds replace them.
        `acceptance` is the share of draft tokens that is assumed to be accepted at the start.
        """
        self._fixed = fixed
        self._lengths = lengths
        self.branches = branches
        """Whether the draft tokens may form a tree."""
        self._costs = _Costs(step_cost, row_costs)
        self._acceptances = _Acceptances(WIDEST if branches else 1, acceptance)
        self._best = dict[tuple[int, int], Tree]()
        """The best trees that are kept, by the arguments of `_kept`."""
        self._rounds = 0
        self._rounds_without = 0
        # Counts since the last round without draft tokens. At the start such a round is due.
        self._rounds_with = self.RECHECK

    def next(self, position: int) -> Tree:
        """Return the tree of draft tokens for a round whose first token has the index `position`
        among the turn's tokens. An empty tree means no draft tokens."""
        if self._fixed is not None:
            return chain(self._fixed)
        left = self.FIRST_CLAUSE - position
        if self._rounds_with >= self.RECHECK and left <= 0:
            return chain(0)
        most = left if left > 0 else MOST
        best = self._kept(most)
        if best or self._rounds_without < self.PROBE:
            return best
        probe, plain = self._kept(most, least=1), self._costs.target(1)
        verified = self._costs.target(len(probe) + 1)
        more = probe.depth * self._costs.step + verified - plain
        hopeless = self._acceptances.totals(len(probe))[-1] * plain < self.HOPELESS * verified
        wait = self.PROBE * (self.SELDOM if hopeless else 1)
        return probe if self._rounds_without * plain >= wait * max(plain, more) else best

    def observe(
        self, tree: Tree, accepted: Sequence[int], draft_ms: float, target_ms: float
    ) -> None:
        """Learn from a round. `accepted` are the nodes of `tree` that were accepted; the times are
        those of each model, in ms."""
        self._costs.observe(tree, draft_ms, target_ms)
        if tree:
            self._rounds_without, self._rounds_with = 0, self._rounds_with + 1
        else:
            self._rounds_without, self._rounds_with = self._rounds_without + 1, 0
        self._acceptances.observe(tree, accepted)
        self._rounds += 1
        if self._rounds % self.KEPT == 0 or (tree and not self.branches):
            self._best.clear()

    def _kept(self, most: int, least: int = 0) -> Tree:
        """Return the best tree of depth `most` at most, or the best chain of `least` tokens at
        least. It is kept for some rounds."""
        if (best := self._best.get((most, least))) is None:
            if self.branches and not least:
                best = self._best_tree(most)
            else:
                best = self._best_chain(most, least)
            self._best[most, least] = best
        return best

    def _best_chain(self, most: int, least: int) -> Tree:
        lengths = [k for k in self._lengths if least <= k <= most]
        rates = _rates(self._acceptances.totals(most), self._costs, lengths)
        return chain(max(rates, key=rates.__getitem__))

    def _best_tree(self, most: int) -> Tree:
        costs, best = self._costs, (1 / self._costs.target(1), list[Path]())
        for depth in range(1, most + 1):
            for total, paths in self._acceptances.trees(depth):
                rate = total / (depth * costs.step + costs.target(len(paths) + 1))
                best = max(best, (rate, paths), key=lambda found: found[0])
        return tree_of(best[1])


def gain(acceptance: float, step_cost: float, row_costs: Mapping[int, float]) -> float:
    """Return how many times as fast decoding is expected to be with the best chain of draft tokens
    as without any. The arguments are those of `DraftPolicy`."""
    costs, totals = _Costs(step_cost, row_costs), _Acceptances(1, acceptance).totals(MOST)
    return max(_rates(totals, costs, EVERY).values()) * costs.target(1)


def _rates(totals: Sequence[float], costs: _Costs, lengths: Iterable[int]) -> dict[int, float]:
    """Return the expected tokens per unit of time of rounds with chains of `lengths` tokens.
    `totals` are the expected tokens by the number of draft tokens."""
    return {k: totals[k] / (k * costs.step + costs.target(k + 1)) for k in lengths}


class _Acceptances:
    """Estimates how often draft tokens are accepted, by their depth in the tree and their rank
    among the draft's choices."""

    MEMORY = 0.95
    """The factor by which earlier observations fade in each round that drafts."""
    POOLED = 4.0
    """The weight of the acceptance over all depths in the estimate for one depth. Its unit is one
    tested draft token."""
    FIRST = 10.0
    """The weight of the acceptance that is assumed at the start. Its unit is one tested draft
    token."""
    HARDLY = 0.01
    """Minimum probability that the draft's first choices are accepted at all depths of a tree.
    Trees with a lower probability are not tried."""
    NEXT = 0.3, 0.15, 0.08
    """The acceptance of the second, third and fourth choice that is assumed at the start, as a
    share of the cases in which the first choice is rejected."""

    def __init__(self, widest: int, acceptance: float) -> None:
        """`widest` is the maximum number of the draft's choices for one position. `acceptance` is
        the assumed probability of the first choice."""
        further = [(1 - acceptance) * share for share in self.NEXT]
        self._all = [
            _Rate(self.FIRST * rate, self.FIRST) for rate in (acceptance, *further)[:widest]
        ]
        """The acceptance over all depths, by rank."""
        self._at = [[_Rate(0.0, 0.0) for _ in range(widest)] for _ in range(MOST)]
        """The acceptance by depth and rank."""

    def observe(self, tree: Tree, accepted: Sequence[int]) -> None:
        """Learn from a round in which the nodes `accepted` of `tree` were accepted."""
        if tree:
            for rate in (*self._all, *(rate for rates in self._at for rate in rates)):
                rate.fade(self.MEMORY)
        # Children of a rejected node were not tested.
        for parent in (ROOT, *accepted):
            for node in tree.children(parent):
                depth, rank = tree.depths[node], tree.ranks[node]
                if depth < MOST:
                    self._all[rank].add(node in accepted)
                    self._at[depth][rank].add(node in accepted)

    def totals(self, most: int) -> list[float]:
        """Return the expected tokens of rounds with 0, 1, …, `most` draft tokens in a chain."""
        totals, reached = [1.0], 1.0
        for depth in range(most):
            reached *= self._probability(depth, 0)
            totals.append(totals[-1] + reached)
        return totals

    def trees(self, depth: int) -> Iterator[tuple[float, list[Path]]]:
        """Yield the best trees of `depth` with up to `MOST` nodes, one for each number of nodes.
        Each item is the expected number of tokens and the nodes. Yield nothing if the probability
        of reaching `depth` is below `HARDLY`."""
        ranks = range(len(self._all))
        probabilities = [[self._probability(at, rank) for rank in ranks] for at in range(depth)]
        if math.prod(ranked[0] for ranked in probabilities) < self.HARDLY:
            return
        # A node enters the heap when its parent and its sibling of the next lower rank have been
        # taken. So the nodes that have been taken always form a tree.
        total, deepest, paths = 1.0, 0, list[Path]()
        heap: list[tuple[float, Path]] = [(-probabilities[0][0], (0,))]
        while heap and len(paths) < MOST:
            worth, path = heapq.heappop(heap)
            total, deepest = total - worth, max(deepest, len(path))
            paths.append(path)
            if deepest == depth:
                yield total, list(paths)
            at, rank = len(path) - 1, path[-1]
            if len(path) < depth:
                heapq.heappush(heap, (worth * probabilities[at + 1][0], (*path, 0)))
            if rank + 1 < len(ranks) and probabilities[at][rank]:
                other = worth * probabilities[at][rank + 1] / probabilities[at][rank]
                heapq.heappush(heap, (other, (*path[:-1], rank + 1)))

    def _probability(self, depth: int, rank: int) -> float:
        everywhere, here = self._all[rank], self._at[depth][rank]
        pooled = self.POOLED * everywhere.accepted / everywhere.tested
        return (here.accepted + pooled) / (here.tested + self.POOLED)


@dataclass(slots=True)
class _Rate:
    accepted: float
    tested: float

    def add(self, accepted: bool) -> None:
        self.tested += 1
        self.accepted += accepted

    def fade(self, left: float) -> None:
        self.accepted *= left
        self.tested *= left


class _Costs:
    """Estimates the times of draft steps and target passes, in ms. Before the first pass is
    measured, the unit is the time of a target pass over one row."""

    RECENT = 5
    """The number of latest times of which the median is taken. The median leaves out passes that
    were interrupted."""

    def __init__(self, step: float, rows: Mapping[int, float]) -> None:
        """`step` is the cost of a draft step, `rows` that of target passes by their number of rows.
        All are relative to a target pass over one row."""
        self._step, self._relative = step, rows
        self._step_ms: deque[float] = deque(maxlen=self.RECENT)
        self._pass_ms: dict[int, deque[float]] = {}
        """The latest times of target passes, by number of rows."""
        self._typical_step: float | None = None
        self._typical_pass: dict[int, float] = {}
        """The median times of target passes, by number of rows."""

    def observe(self, tree: Tree, draft_ms: float, target_ms: float) -> None:
        """Add the times of a round."""
        rows = len(tree) + 1
        self._pass_ms.setdefault(rows, deque(maxlen=self.RECENT)).append(target_ms)
        self._typical_pass[rows] = median(self._pass_ms[rows])
        if tree:
            self._step_ms.append(draft_ms / tree.depth)
            self._typical_step = median(self._step_ms)

    @property
    def step(self) -> float:
        """The time of one draft step, which computes all nodes of one depth."""
        return self._step * self.target(1) if self._typical_step is None else self._typical_step

    def target(self, rows: int) -> float:
        """Return the time of a target pass over `rows` rows: its cost that is known from the start,
        times what the nearest numbers of rows that were measured took next to theirs."""
        measured = self._typical_pass
        if not measured:
            return self._cost(rows)
        took = {known: time / self._cost(known) for known, time in measured.items()}
        return self._cost(rows) * _between(took, rows)

    def _cost(self, rows: int) -> float:
        """Return the cost of a pass over `rows` rows as it is known from the start. Beyond the
        largest number of rows that is known, each row costs as much as one of those."""
        most = max(self._relative)
        return _between(self._relative, rows) * max(1.0, rows / most)


def _between(values: Mapping[int, float], at: int) -> float:
    """Return the value at `at`, interpolated between the nearest keys of `values`."""
    below = max((key for key in values if key <= at), default=min(values))
    above = min((key for key in values if key >= at), default=max(values))
    share = (at - below) / (above - below) if above > below else 0.0
    return values[below] + share * (values[above] - values[below])


def tree_of(paths: Sequence[Path]) -> Tree:
    """Build the tree whose nodes are `paths`, with the parent of each node among them."""
    ordered = sorted(paths, key=lambda path: (len(path), path))
    numbers = {path: number for number, path in enumerate(ordered)}
    return Tree(tuple(numbers.get(path[:-1], ROOT) for path in ordered))
