"""What to draft in a round. This module knows neither models nor the clock."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from voiceloop.llm.rules.tree import ROOT, Tree, chain

MOST = 16
EVERY = range(MOST + 1)
"""Numbers of draft tokens that a round may have, if nothing is against it."""
WIDEST = 4
"""Tokens that may be tried for one place."""
Path = tuple[int, ...]
"""A node, by the ranks of those on the path to it, and its own."""


class DraftPolicy:
    """What to draft in a round: the tokens that yield most for their time.

    A round of k draft tokens yields 1 + a_1 + a_1 a_2 + … + a_1 … a_k tokens, where a_i is the
    chance that draft token i is accepted if those before it were (Leviathan et al. 2023, section
    3.1, for one a). It takes k steps of the draft and a pass of the target over k + 1 rows. Where
    it may branch, the draft's second choice for a place has a chance of its own, and so on: a node
    of a tree adds the product of those on its path, and as many steps are taken as the tree is deep
    (Chen et al. 2024, Sequoia, arXiv 2402.12374, section 3.1). Acceptances and times are those of
    recent rounds, which are passed in; nothing depends on which tokens were drafted or will be, or
    what is said would be distributed in another way.
    """

    FIRST_CLAUSE = 8
    """Tokens of a reply's first clause, about: until then no draft reaches further, for these
    tokens are wanted soon, not many at once."""
    PROBE = 20
    """Rounds without a draft token after which one is tried, to see whether it pays by now; more if
    it takes longer than a round without one, so that this costs a twentieth at most."""
    RECHECK = 200
    """Rounds with draft tokens after which one goes without, to see what that costs by now."""
    KEPT = 8
    """Rounds for which the best tree stays it, since it takes a while to find, and the best chain
    where none was drafted."""

    def __init__(
        self,
        fixed: int | None,
        step_cost: float,
        row_cost: float = 0.0,
        lengths: Sequence[int] = EVERY,
        *,
        branches: bool = False,
    ) -> None:
        """`fixed` tokens a round, or where it is None as many as pay, of those in `lengths`, in a
        chain, or of any number in whatever tree pays.

        Costs are relative to a target pass over one row, and count until they are measured: that
        of a draft step, and that of each further row of a target pass.
        """
        self._fixed = fixed
        self._lengths = lengths
        self.branches = branches
        """Whether it may be a tree."""
        self._costs = _Costs(step_cost, row_cost)
        self._chances = _Chances(WIDEST if branches else 1)
        self._best = dict[int, Tree]()
        """By how deep it may be, for a few rounds."""
        self._rounds = 0
        self._rounds_without = 0
        self._rounds_with = self.RECHECK  # since a round without draft tokens: none was seen yet

    def next(self, position: int) -> Tree:
        """What to draft for the round that begins with the reply's token `position`."""
        if self._fixed is not None:
            return chain(self._fixed)
        left = self.FIRST_CLAUSE - position
        if self._rounds_with >= self.RECHECK and left <= 0:
            return chain(0)
        most = left if left > 0 else MOST
        if (best := self._best.get(most)) is None:
            find = self._best_tree if self.branches else self._best_chain
            best = self._best[most] = find(most)
        plain = self._costs.target(1)
        more = self._costs.step + self._costs.target(2) - plain
        probing = self._rounds_without * plain >= self.PROBE * max(plain, more)
        return best if best or not probing else chain(1)

    def observe(
        self, tree: Tree, accepted: Sequence[int], draft_ms: float, target_ms: float
    ) -> None:
        """Learn from a round in which these nodes of `tree` were accepted, and what it took."""
        self._costs.observe(tree, draft_ms, target_ms)
        if tree:
            self._rounds_without, self._rounds_with = 0, self._rounds_with + 1
        else:
            self._rounds_without, self._rounds_with = self._rounds_without + 1, 0
        self._chances.observe(tree, accepted)
        self._rounds += 1
        if self._rounds % self.KEPT == 0 or (tree and not self.branches):
            self._best.clear()

    def _best_chain(self, most: int) -> Tree:
        totals, costs = self._chances.totals(most), self._costs
        rates = {
            k: totals[k] / (k * costs.step + costs.target(k + 1))
            for k in self._lengths
            if k <= most
        }
        return chain(max(rates, key=rates.__getitem__))

    def _best_tree(self, most: int) -> Tree:
        costs, best = self._costs, (1 / self._costs.target(1), list[Path]())
        for depth in range(1, most + 1):
            for total, paths in self._chances.trees(depth):
                rate = total / (depth * costs.step + costs.target(len(paths) + 1))
                best = max(best, (rate, paths), key=lambda found: found[0])
        return tree_of(best[1])


class _Chances:
    """How often draft tokens are accepted, by their depth and by which choice of the draft's they
    were."""

    MEMORY = 0.95
    """What remains of an observed acceptance after each later round that drafts."""
    POOLED = 4.0
    """Tests at a depth that the acceptance at all is worth, for want of its own."""
    FIRST = 7.0, 10.0
    """What a draft is taken for until it is known: of tests so many accepted."""
    HARDLY = 0.01
    """Where a node is reached less often, no tree goes so deep."""
    NEXT = 0.3, 0.15, 0.08
    """Of what a choice leaves, the share that each further one is taken for until it is known."""

    def __init__(self, widest: int) -> None:
        """`widest` is how many choices of the draft's there are for a place."""
        accepted, tested = self.FIRST
        further = [(tested - accepted) * share for share in self.NEXT]
        self._all = [_Rate(count, tested) for count in (accepted, *further)[:widest]]
        """By rank."""
        self._at = [[_Rate(0.0, 0.0) for _ in range(widest)] for _ in range(MOST)]
        """By depth and rank."""

    def observe(self, tree: Tree, accepted: Sequence[int]) -> None:
        """Learn from a round in which these nodes were accepted."""
        if tree:
            for rate in (*self._all, *(rate for rates in self._at for rate in rates)):
                rate.fade(self.MEMORY)
        # What follows a node that was not accepted was not tested.
        for parent in (ROOT, *accepted):
            for node in tree.children(parent):
                depth, rank = tree.depths[node], tree.ranks[node]
                if depth < MOST:
                    self._all[rank].add(node in accepted)
                    self._at[depth][rank].add(node in accepted)

    def totals(self, most: int) -> list[float]:
        """Expected tokens of rounds of 0, 1, …, `most` draft tokens in a chain."""
        totals, reached = [1.0], 1.0
        for depth in range(most):
            reached *= self._chance(depth, 0)
            totals.append(totals[-1] + reached)
        return totals

    def trees(self, depth: int) -> Iterator[tuple[float, list[Path]]]:
        """The best trees of that depth, of up to `MOST` nodes, and the tokens that each is expected
        to yield; none where so deep a node is hardly ever reached."""
        ranks = range(len(self._all))
        chances = [[self._chance(at, rank) for rank in ranks] for at in range(depth)]
        if math.prod(chance[0] for chance in chances) < self.HARDLY:
            return
        # A node is worth less than what it follows and than the choice before it, so that the most
        # valuable nodes are a tree.
        total, deepest, paths = 1.0, 0, list[Path]()
        heap: list[tuple[float, Path]] = [(-chances[0][0], (0,))]
        while heap and len(paths) < MOST:
            worth, path = heapq.heappop(heap)
            total, deepest = total - worth, max(deepest, len(path))
            paths.append(path)
            if deepest == depth:
                yield total, list(paths)
            at, rank = len(path) - 1, path[-1]
            if len(path) < depth:
                heapq.heappush(heap, (worth * chances[at + 1][0], (*path, 0)))
            if rank + 1 < len(ranks) and chances[at][rank]:
                other = worth * chances[at][rank + 1] / chances[at][rank]
                heapq.heappush(heap, (other, (*path[:-1], rank + 1)))

    def _chance(self, depth: int, rank: int) -> float:
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
    """What a step of the draft and a pass of the target take."""

    RECENT = 5
    """Measured times of a kind that count; their median is taken, since some are interrupted."""

    def __init__(self, step: float, row: float) -> None:
        """What they are said to take next to a pass over one row, until they are measured."""
        self._step, self._row = step, row
        self._step_ms: deque[float] = deque(maxlen=self.RECENT)
        self._pass_ms: dict[int, deque[float]] = {}
        """By number of rows."""
        self._measured: list[int] = []
        """Those numbers, in order."""
        self._typical_step: float | None = None
        self._typical_pass: dict[int, float] = {}
        """Their medians."""

    def observe(self, tree: Tree, draft_ms: float, target_ms: float) -> None:
        """Learn from a round."""
        rows = len(tree) + 1
        if rows not in self._pass_ms:
            self._pass_ms[rows] = deque(maxlen=self.RECENT)
            insort(self._measured, rows)
        self._pass_ms[rows].append(target_ms)
        self._typical_pass[rows] = median(self._pass_ms[rows])
        if tree:
            self._step_ms.append(draft_ms / tree.depth)
            self._typical_step = median(self._step_ms)

    @property
    def step(self) -> float:
        """Of the draft, which all nodes of a depth share."""
        return self._step * self.target(1) if self._typical_step is None else self._typical_step

    def target(self, rows: int) -> float:
        """Of a pass of the target, from those over the nearest numbers of rows."""
        measured = self._measured
        if not measured:
            return self._relative(rows)
        at = bisect_left(measured, rows)
        if at < len(measured) and (at > 0 or rows == measured[at]):
            fewer, more = measured[max(0, at - 1)], measured[at]
            low, high = self._typical_pass[fewer], self._typical_pass[more]
            return high + (low - high) * (more - rows) / max(1, more - fewer)
        nearest = measured[min(at, len(measured) - 1)]
        return self._typical_pass[nearest] * self._relative(rows) / self._relative(nearest)

    def _relative(self, rows: int) -> float:
        """What a pass over so many rows is said to take next to one over a single row."""
        return 1 + (rows - 1) * self._row


def tree_of(paths: Sequence[Path]) -> Tree:
    """The tree of these nodes."""
    ordered = sorted(paths, key=lambda path: (len(path), path))
    numbers = {path: number for number, path in enumerate(ordered)}
    return Tree(tuple(numbers.get(path[:-1], ROOT) for path in ordered))
