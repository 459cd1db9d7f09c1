"""Replies begun ahead: to what the user is likely to say next, before they have said it.

The language model itself tells what that is: it has read users as well as assistants. The likeliest
texts are looked for, each is answered a little, and of the answers that begin differently the
likeliest go on, just as the reply would. All of that is one tree behind the conversation, a few
rows a pass. When the user has finished, whatever branch begins as the reply does is offered as its
draft. The target verifies it like any other, so a branch may be good for words that nobody foresaw:
"shorter, please" and "make it shorter" have one answer.

This module does not know when there is time for that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence, Set
from time import thread_time

import torch
from torch import Tensor

from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import Decoder, feed
from voiceloop.llm.model.stopwatch import Stopwatch
from voiceloop.llm.parallel.candidates import Followed
from voiceloop.llm.parallel.likely import AT_ONCE, Found, Tokens, most_likely
from voiceloop.llm.parallel.lines import Chooser, Line, Nodes
from voiceloop.llm.rules.sampling import Penalties, Sampling
from voiceloop.llm.rules.stats import LlmCounters
from voiceloop.llm.rules.verify import Verifier
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.llm.text.translation import common

ROWS = 48
"""Rows of a search for what the user may say."""
TEXTS = 2
"""Likely texts that are answered, for each branch: many have the same answer."""
ALIKE = 2
"""Tokens by which answers are told apart before most of them are given up."""
TOKENS = 16
"""Tokens of each branch, which is the first clause of a reply and a token that shows its end."""
TURN_ROWS = 150
"""Rows for one turn: a search and its replies, or several where the model is sure of what comes."""


class Ahead:
    """The branches of one conversation. They compute in a cache of their own, which has rows for
    as long as they do.

    Its attributes are many: what is asked for from the loop, and what runs, are told apart."""

    def __init__(
        self,
        target: Decoder,
        sampling: Sampling,
        template: ChatTemplate,
        cache: KvCache,
        most: int,
        counters: LlmCounters,
    ) -> None:
        """`sampling` is the conversation's, which must not be that of rejection: a branch would be
        verified by the numbers that chose it. `cache` is an empty one. At most so many branches are
        begun at a time; `counters` are the conversation's."""
        self._target = target
        self._template = template
        self._cache = cache
        self._most = most
        self._counters = counters
        verifier = Verifier(sampling, target.vocab, target.device, remembered=0)
        self._chooser = Chooser(verifier, Penalties(sampling, target.vocab, target.device))
        self._clocks = Stopwatch(target.device), Stopwatch(torch.device("cpu"), thread_time)
        self._turn: int | None = None
        self._left = 0
        """Rows that may still be computed for the turn."""
        self._replies: list[Tokens] = []
        """Those that were begun for the turn, the newest first."""
        self._running: Generator[None, None, None] | None = None
        """The steps that hold the cache, if any do."""
        self._looking: object | None = None
        """The search that goes on, if nothing has been asked for meanwhile."""

    def begin(self, turn: int) -> None:
        """The conversation has something to do for the user's `turn`: no more is begun for now."""
        self._looking = None
        self._turn_to(turn)

    def after(self, reply: Sequence[int]) -> Tokens:
        """How a reply to the turn that begins so may go on; empty where nobody knows."""
        begun, known = tuple(reply), len(reply)
        return next((one[known:] for one in self._replies if one[:known] == begun != one), ())

    def verified(self, offered: int, accepted: int) -> None:
        """So many tokens of a branch were offered as a draft, and so many accepted."""
        self._counters.branch_hits += accepted == offered
        self._counters.branch_accepted += accepted

    def grow(
        self,
        before: Sequence[int],
        said: str,
        turn: int,
        ids: Sequence[int],
        known: KvCache,
        earlier: Set[int],
        follow: Callable[[], Followed],
    ) -> Generator[int, None, Sequence[Tokens]]:
        """Begin replies to what the user may say in `turn` after `before`; they have `said` the
        beginning of it. The cache `known` holds rows of a beginning of `ids`, and `earlier` replies
        and what was said consist of these tokens. What a new `follow` is told of a reply tells
        where its first clause ends.

        Pauses after each pass, to tell how many tokens there are so far, and may be closed there.
        Returns what was begun, likeliest first; with the next `begin` or `grow` it ends with
        nothing.
        """
        self._looking = looking = object()
        prompt = [*before, *self._template.content(said)]
        steps = self._grow(prompt, turn, ids, known, earlier, follow)
        return self._measured(steps, turn, looking)

    def _measured(
        self, steps: Generator[None, None, None], turn: int, looking: object
    ) -> Generator[int, None, Sequence[Tokens]]:
        """The steps of one search, for as long as it is the one that goes on."""
        if self._looking is not looking:
            return ()
        self._let_go()  # of what an earlier search holds that has not noticed yet that it is over
        self._turn_to(turn)
        (wall, processor), before = self._clocks, self._counters.branch_tokens
        self._running = running = processor.steps(wall.steps(steps))
        try:
            while self._looking is looking and self._left > 0:
                if next(running, running) is running:
                    return self._replies[: self._most]
                yield self._counters.branch_tokens - before
            return ()
        finally:
            if self._running is running:
                self._let_go()

    def _let_go(self) -> None:
        """End the search that runs, and free its cache."""
        if self._running is None:
            return
        self._running.close()
        self._running = None
        self._cache.release()
        wall, processor = self._clocks
        self._counters.branch_ms += wall.take()
        self._counters.branch_processor_ms += processor.take()

    def _turn_to(self, turn: int) -> None:
        if turn != self._turn:
            self._turn, self._replies, self._left = turn, [], TURN_ROWS

    @torch.inference_mode()
    def _grow(
        self,
        prompt: Sequence[int],
        turn: int,
        ids: Sequence[int],
        known: KvCache,
        earlier: Set[int],
        follow: Callable[[], Followed],
    ) -> Generator[None, None, None]:
        cache, texts = self._cache, TEXTS * self._most
        rows = ROWS + texts * (len(self._template.user_to_reply) + 2 * ALIKE)
        if (
            self._left < ROWS
            or not prompt
            or len(prompt) + rows + 2 * TOKENS * self._most > cache.capacity
        ):
            return
        cache.fork(known, min(common(prompt, ids), len(prompt) - 1))
        root = yield from feed(self._target, cache, prompt)
        assert root is not None, "the last one at least was unknown"
        yield None
        nodes = Nodes(cache.length)
        found = yield from self._texts(nodes, root[0], texts)
        self._chooser.verifier.begin(turn, (), 0)
        self._chooser.penalties.begin(earlier)
        seed = self._chooser.verifier.sampling.seed
        lines = [Line(seed, TOKENS, _first_clause(follow()), text.node) for text in found]
        yield from self._answer(nodes, lines)
        yield from self._write(nodes, lines, ALIKE)
        lines = _different(lines)[: self._most]
        self._know(lines)
        for _ in self._write(nodes, lines, TOKENS):
            self._know(lines)
            yield None

    def _texts(self, nodes: Nodes, root: Tensor, count: int) -> Generator[None, None, list[Found]]:
        """What the user is likely to say, whose beginning has the logits `root` behind it."""

        def extend(follows: Sequence[int], tokens: Sequence[int]) -> Tensor:
            nodes.grow(follows, tokens)
            return self._computed(nodes)

        end = self._template.user_to_reply[0]
        return (yield from most_likely(root, extend, end, count=count, rows=ROWS))

    def _answer(self, nodes: Nodes, lines: Sequence[Line]) -> Generator[None, None, None]:
        """Let each of `lines`, which are at the texts they are to answer, have its first token."""
        marks = self._template.user_to_reply
        at_once = max(1, AT_ONCE // len(marks))
        for group in (lines[at : at + at_once] for at in range(0, len(lines), at_once)):
            for line in group:
                nodes.follow(line.node, marks)
                line.node = len(nodes.x) - 1
            nodes.asked = len(nodes.x)
            yield from self._go_on(nodes, group)

    def _write(self, nodes: Nodes, lines: Sequence[Line], most: int) -> Generator[None, None, None]:
        """Let each of `lines` have so many tokens, or its end."""
        while going := [line for line in lines if not line.done and len(line.tokens) < most]:
            nodes.add(going)
            for line in {line.node: line for line in going}.values():
                nodes.follow(line.node, self.after(line.tokens)[: most - len(line.tokens)])
            yield from self._go_on(nodes, going)

    def _go_on(self, nodes: Nodes, lines: Sequence[Line]) -> Generator[None, None, None]:
        """One pass over what is new of `nodes`, behind which each of `lines` goes on."""
        before = sum(len(line.tokens) for line in lines)
        self._chooser.walk(lines, nodes, self._computed(nodes), 0)
        self._counters.branch_tokens += sum(len(line.tokens) for line in lines) - before
        yield None

    def _computed(self, nodes: Nodes) -> Tensor:
        """The logits behind what is new of `nodes`."""
        logits = nodes.compute(self._target, self._cache)
        self._left -= len(logits)
        return logits

    def _know(self, lines: Sequence[Line]) -> None:
        """Offer what `lines` have by now before what others have, and of these none that is but the
        beginning of one."""
        newest = list(dict.fromkeys(tuple(line.tokens) for line in lines))
        older = [one for one in self._replies if not any(one == new[: len(one)] for new in newest)]
        self._replies = newest + older


def _first_clause(reply: Followed) -> Callable[[int], bool]:
    """Tells of each token of a reply whether its first clause was over before, or all is now."""
    over = False

    def ends(token: int) -> bool:
        nonlocal over
        before, over = over, reply.push(token)
        return before or reply.complete

    return ends


def _different(lines: Sequence[Line]) -> list[Line]:
    """The first of those that begin alike before all the others."""
    seen, rest = dict[Tokens, Line](), list[Line]()
    for line in lines:
        if seen.setdefault(tuple(line.tokens[:ALIKE]), line) is not line:
            rest.append(line)
    return [*seen.values(), *rest]
