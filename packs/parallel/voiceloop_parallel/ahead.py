"""Begin replies before the user has finished, to texts that they are likely to say.

The language model itself predicts the user's words: it was trained on users as well as assistants.
It searches for the likeliest texts and begins an answer to each. A few of the answers are
continued, with different beginnings if possible: these are the branches. All texts and answers form
one tree of tokens after the conversation. Each pass computes a few rows of the tree.

When the user has finished, a branch that begins like the reply is offered to the target as draft
tokens. The target verifies them like any others. So a branch is useful even if the user's words
were not predicted: "shorter, please" and "make it shorter" have the same answer.

This module does not know when there is time to search.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from time import thread_time
from typing import NamedTuple

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.decode.hook import ReplyHook
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.model.cache import MEMORY_HINT, KvCache
from voiceloop.llm.model.decoder import Decoder, feed
from voiceloop.llm.model.timing import Stopwatch
from voiceloop.llm.rules.sampling import Sampling
from voiceloop.llm.rules.stats import Step
from voiceloop.llm.rules.verify import ROOT
from voiceloop.llm.text.output import Output
from voiceloop.placement import memory_for
from voiceloop_parallel.lines import CandidateUtterance, Chooser, Nodes, ParallelReply

ROWS = 48
"""Maximum number of rows that a search for the user's text may compute."""
TEXTS = 2
"""Number of the user's texts that are answered for each branch that is wanted. It is more than 1
because many texts have the same answer."""
ALIKE = 2
"""Number of first tokens that are compared to find out whether two answers are different. After
this many tokens only the branches are continued."""
TOKENS = 16
"""Maximum number of tokens of a branch: the first clause of a reply, and a token that shows that
the clause is over."""
TURN_ROWS = 150
"""Maximum number of rows for one turn. It is enough for one search and its answers, or for several
searches if they are short because the model is sure of the text."""


AT_ONCE = 16
"""Maximum number of beginnings that are extended in one pass."""
SPREAD = 5.0
"""Maximum difference in log-probability between the beginnings that are extended in one pass. If
the model is sure of the next token, few beginnings are within it, so a pass has few rows and more
passes can be made."""
WIDTH = 8
"""Number of tokens with which each beginning is extended: the likeliest next ones."""

Tokens = tuple[int, ...]


@dataclass(slots=True)
class BranchCounters:
    """The cost of one conversation's branches, and how many of their tokens were used."""

    hits: int = 0
    """Replies that began with a whole branch."""
    accepted: int = 0
    """Tokens of branches that were accepted as drafts."""
    tokens: int = 0
    """All tokens of branches, used or not."""
    ms: float = 0.0
    """Milliseconds for branches, including the searches for the user's text."""
    processor_ms: float = 0.0
    """Milliseconds of processor time for branches on the model's thread."""


class Ahead(ReplyHook):
    """Begins replies ahead for one conversation. The cache for them has memory only during a
    search.

    The class has many attributes because the search that is wanted and the search that runs may be
    different ones.
    """

    def __init__(
        self,
        speculator: Speculator,
        target: Decoder,
        sampling: Sampling,
        user_to_reply: Sequence[int],
        ends: frozenset[int],
        most: int,
    ) -> None:
        """`speculator`, `target` and `sampling` are the conversation's. Rejection sampling is not
        allowed: the same random numbers would choose a branch and verify it. `user_to_reply` are
        the template's tokens between a user's text and a reply. `ends` are the tokens that end a
        reply. At most `most` branches are continued at a time."""
        self.counters = BranchCounters()
        self._speculator = speculator
        self._target = target
        self._marks = user_to_reply
        self._ends = ends
        self._cache = KvCache(speculator.cache.capacity)
        self._most = most
        self._chooser = Chooser(target, sampling)
        self._clocks = Stopwatch(target.device), Stopwatch(torch.device("cpu"), thread_time)
        self._turn: int | None = None
        self._left = 0
        """The rows that may still be computed for the turn."""
        self._replies: list[Tokens] = []
        """The tokens of the turn's branches, the newest first."""
        self._running: Generator[None, None, None] | None = None
        """The steps of the search whose rows are in the cache; None if there is none."""
        self._wanted: object | None = None
        """Identifies the search that is wanted; None if no search is wanted."""

    def begin(self, turn: int) -> None:
        """End the current search. If `turn` is a new turn, forget the branches of the turn before
        it."""
        self._wanted = None
        self._turn_to(turn)

    def further(self, ids: Sequence[int], reply: Sequence[int], limit: int) -> Step | None:
        """Verify the rest of a branch that begins like the reply. Return None if no branch does.

        The step's fact `foreseen` is the number of the branch's tokens that were accepted.
        """
        draft = self._after(reply)[: limit - 1]
        if not draft:
            return None
        step = self._speculator.offer(ids, draft)
        self.counters.hits += step.accepted == len(draft)
        self.counters.accepted += step.accepted
        return replace(step, facts={"foreseen": step.accepted})

    def ahead(
        self, turn: int, prompt: Callable[[], tuple[Prompt, int]], output: Callable[[], Output]
    ) -> Steps[int]:
        """Search for the user's text and begin replies to the likeliest texts. The next call of
        `begin` or `ahead` ends this search. Each step gives the number of tokens so far."""
        self._wanted = search = object()
        return self._measured(self._grow(prompt, output), turn, search)

    def _after(self, reply: Sequence[int]) -> Tokens:
        """Return the rest of a branch that begins with `reply`; empty if there is none."""
        begun, known = tuple(reply), len(reply)
        return next((one[known:] for one in self._replies if one[:known] == begun != one), ())

    def _measured(
        self, steps: Generator[None, None, None], turn: int, search: object
    ) -> Steps[int]:
        """Run the steps of `search` while it is wanted, and measure their time. Yield the number of
        tokens so far."""
        if self._wanted is not search:
            return
        self._let_go()  # an earlier search that was ended stays open until its next step
        self._turn_to(turn)
        (wall, processor), before = self._clocks, self.counters.tokens
        self._running = running = processor.steps(wall.steps(steps))
        try:
            while self._wanted is search and self._left > 0:
                with memory_for("what a conversation begins ahead", MEMORY_HINT):
                    if next(running, running) is running:
                        return
                yield self.counters.tokens - before
        finally:
            if self._running is running:
                self._let_go()

    def _let_go(self) -> None:
        """Close the search that runs, if any, and free the memory of its cache."""
        if self._running is None:
            return
        self._running.close()
        self._running = None
        self._cache.release()
        wall, processor = self._clocks
        self.counters.ms += wall.take()
        self.counters.processor_ms += processor.take()

    def _turn_to(self, turn: int) -> None:
        """Forget the branches of the turn before, if `turn` is a new one."""
        if turn != self._turn:
            self._turn, self._replies, self._left = turn, [], TURN_ROWS

    @torch.inference_mode()
    def _grow(
        self, prompt: Callable[[], tuple[Prompt, int]], output: Callable[[], Output]
    ) -> Generator[None, None, None]:
        """Search for the user's text, and write branches that answer it. Pause after each pass."""
        cache, texts = self._cache, TEXTS * self._most
        begun, shared = prompt()
        ids = begun.ids
        rows = ROWS + texts * (len(self._marks) + 2 * ALIKE) + 2 * TOKENS * self._most
        if self._left < ROWS or not ids or len(ids) + rows > cache.capacity:
            return
        cache.fork(self._speculator.cache, min(shared, len(ids) - 1))
        root = yield from feed(self._target, cache, ids)
        assert root is not None, "the last one at least was unknown"
        yield None
        nodes = Nodes(cache.length)
        found = yield from self._texts(nodes, root[0], texts)
        self._chooser.begin(begun.turn, begun.earlier)
        lines = [
            ParallelReply(self._chooser.seed, TOKENS, self._first_clause(output()), text.node)
            for text in found
        ]
        yield from self._answer(nodes, lines)
        yield from self._write(nodes, lines, ALIKE)
        lines = _different(lines)[: self._most]
        self._know(lines)
        for _ in self._write(nodes, lines, TOKENS):
            self._know(lines)
            yield None

    def _texts(self, nodes: Nodes, root: Tensor, count: int) -> Generator[None, None, list[Found]]:
        """Search for the `count` likeliest texts of the user. `root` [vocab] are the logits before
        the text."""

        def extend(follows: Sequence[int], tokens: Sequence[int]) -> Tensor:
            nodes.grow(follows, tokens)
            return self._computed(nodes)

        end = self._marks[0]
        return (yield from most_likely(root, extend, end, count=count, rows=ROWS))

    def _answer(self, nodes: Nodes, lines: Sequence[ParallelReply]) -> Generator[None, None, None]:
        """Choose the first token of each of `lines`, the answers. Before the call, the node of each
        line is the last token of the text that the line answers."""
        marks = self._marks
        at_once = max(1, AT_ONCE // len(marks))
        for group in (lines[at : at + at_once] for at in range(0, len(lines), at_once)):
            for line in group:
                nodes.follow(line.node, marks)
                line.node = len(nodes.x) - 1
            nodes.prompt_length = len(nodes.x)
            yield from self._go_on(nodes, group)

    def _write(
        self, nodes: Nodes, lines: Sequence[ParallelReply], most: int
    ) -> Generator[None, None, None]:
        """Continue each of `lines` up to `most` tokens or its end."""
        while going := [line for line in lines if not line.done and len(line.tokens) < most]:
            nodes.add(going)
            for line in {line.node: line for line in going}.values():
                nodes.follow(line.node, self._after(line.tokens)[: most - len(line.tokens)])
            yield from self._go_on(nodes, going)

    def _go_on(self, nodes: Nodes, lines: Sequence[ParallelReply]) -> Generator[None, None, None]:
        """Compute the rows of the new `nodes`, and let each of `lines` choose its next tokens."""
        before = sum(len(line.tokens) for line in lines)
        self._chooser.walk(lines, nodes, self._computed(nodes), 0)
        self.counters.tokens += sum(len(line.tokens) for line in lines) - before
        yield None

    def _computed(self, nodes: Nodes) -> Tensor:
        """Compute the rows of the new `nodes`; return the logits after them, [new, vocab]."""
        logits = nodes.compute(self._target, self._cache)
        self._left -= len(logits)
        return logits

    def _know(self, lines: Sequence[ParallelReply]) -> None:
        """Put the tokens of `lines` at the beginning of the list of branches. Older branches that
        these continue are dropped."""
        newest = list(dict.fromkeys(tuple(line.tokens) for line in lines))
        older = [one for one in self._replies if not any(one == new[: len(one)] for new in newest)]
        self._replies = newest + older

    def _first_clause(self, output: Output) -> Callable[[int], bool]:
        """Return a function to call with each token of a reply in turn. It returns whether the line
        ends with the token: because the first clause was complete before that token, or because the
        reply is complete with it."""
        reply, over = CandidateUtterance(output, self._ends, clause=True), False

        def ends(token: int) -> bool:
            nonlocal over
            before, over = over, reply.push(token)
            return before or reply.complete

        return ends


def _different(lines: Sequence[ParallelReply]) -> list[ParallelReply]:
    """Return `lines` in a new order: first one line for each different beginning, then all others.
    The beginning is the first `ALIKE` tokens."""
    seen, rest = dict[Tokens, ParallelReply](), list[ParallelReply]()
    for line in lines:
        if seen.setdefault(tuple(line.tokens[:ALIKE]), line) is not line:
            rest.append(line)
    return [*seen.values(), *rest]


class Found(NamedTuple):
    """A continuation that was found."""

    tokens: Tokens
    node: int
    """The node of the last token; `ROOT` if there are no tokens."""


Extend = Callable[[Sequence[int], Sequence[int]], Tensor]
"""The type of a function that adds nodes to the tree. Its arguments are the parent and the token of
each new node. It returns the logits after each new node, [nodes, vocab]."""


def most_likely(
    root: Tensor, extend: Extend, end: int, *, count: int, rows: int
) -> Generator[None, None, list[Found]]:
    """Search for the most likely continuations of a text, each up to the token `end`, which is left
    out. Return at most `count`, the likeliest first.

    This is a best-first search (Meister, Vieira and Cotterell 2020, Best-First Beam Search). A
    beginning is the first tokens of a continuation. The likeliest beginnings so far are extended
    first, so continuations are completed in about the order of their probability. Several
    beginnings are extended in one pass, which takes hardly longer than a pass for one.

    `root` are the logits after the text to continue, [vocab]. A continuation is left out if a
    likelier one begins with it. For example, a text without its full stop is left out after the
    text with it. The search pauses after each pass. After `rows` rows no beginnings are extended
    any more; the continuations that are complete by then are still returned.
    """
    beginnings: list[tuple[float, Tokens, int]] = []
    found: list[Found] = []
    begun = set[Tokens]()
    nodes = 0

    def add(cost: float, ids: Tokens, node: int, logits: Tensor) -> None:
        best = logits.float().log_softmax(-1).topk(WIDTH)
        for score, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            heappush(beginnings, (cost - score, (*ids, token), node))

    add(0.0, (), ROOT, root)
    while beginnings and len(found) < count:
        if beginnings[0][1][-1] == end:
            _, (*ids, _), node = heappop(beginnings)
            if tuple(ids) not in begun:
                found.append(Found(tuple(ids), node))
                begun.update(tuple(ids[:length]) for length in range(len(ids)))
            continue
        whole: list[tuple[float, Tokens, int]] = []
        chosen: list[tuple[float, Tokens, int]] = []
        unlikely = beginnings[0][0] + SPREAD
        while beginnings and len(chosen) < AT_ONCE and beginnings[0][0] <= unlikely:
            one = heappop(beginnings)
            (whole if one[1][-1] == end else chosen).append(one)
        for one in whole:
            heappush(beginnings, one)
        chosen = chosen[: rows - nodes]
        if not chosen:  # no rows are left, so only complete continuations are taken
            continue
        logits = extend([node for _, _, node in chosen], [ids[-1] for _, ids, _ in chosen])
        for (cost, ids, _), after in zip(chosen, logits, strict=True):
            add(cost, ids, nodes, after)
            nodes += 1
        yield None
    return found
