"""Replies begun ahead: to what the user is likely to say next, before they have said it.

The language model itself tells what that is: it has read users as well as assistants. Each branch
is the beginning of its reply to a text that it finds likely, just as the reply would begin. When
the user has finished, whatever branch begins as the reply does is offered as its draft. The target
verifies it like any other, so a branch may be good for words that nobody foresaw: "shorter, please"
and "make it shorter" have one answer.

This module does not know when there is time for that.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence, Set
from time import thread_time
from typing import Any

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import Decoder
from voiceloop.llm.likely import AT_ONCE, Tokens, most_likely
from voiceloop.llm.speculate import Speculator
from voiceloop.llm.stats import LlmCounters
from voiceloop.llm.stopwatch import Stopwatch
from voiceloop.llm.template import ChatTemplate
from voiceloop.llm.translation import common
from voiceloop.llm.tree import Tree

PASSES = 12
"""Passes of a search for what the user may say: no text of more tokens is found."""
STEPS = 24
"""Steps for a turn beside one search, for each branch that may be begun at a time."""
TEXTS = 2
"""Likely texts that are answered, for each branch: many have the same answer."""
TOKENS = 12
"""Tokens of each reply: about its first clause."""


class Ahead:
    """The branches of one conversation. They compute in caches of their own, which are there for
    as long as they do.

    Its attributes are many: what is asked for from the loop, and what runs, are told apart."""

    def __init__(
        self,
        target: Decoder,
        speculator: Speculator,
        template: ChatTemplate,
        tokenizer: Any,
        eos: frozenset[int],
        most: int,
        counters: LlmCounters,
    ) -> None:
        """`speculator` is one of the target with the conversation's sampling, which must not be
        that of rejection: a branch would be verified by the numbers that chose it. At most so many
        branches are begun at a time; `counters` are the conversation's."""
        self._target = target
        self._speculator = speculator
        self._template = template
        self._tokenizer = tokenizer
        self._eos = eos
        self._most = most
        self._counters = counters
        self._clocks = Stopwatch(target.device), Stopwatch(torch.device("cpu"), thread_time)
        self._turn: int | None = None
        self._left = 0
        """Steps that may still be made for the turn."""
        self._replies: list[Tokens] = []
        """Those that were begun for the turn, the newest first."""
        self._earlier: Set[int] = frozenset()
        """Tokens of the conversation's replies before it."""
        self._running: Generator[None, None, None] | None = None
        """The steps that hold the caches, if any do."""
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
    ) -> Steps[None]:
        """Begin replies to what the user may say in `turn` after `before`; they have `said` the
        beginning of it. The cache `known` holds rows of a beginning of `ids`, and `earlier` replies
        consist of these tokens.

        Pauses after each pass, and may be closed there. It ends with the next `begin`.
        """
        self._looking = looking = object()
        self._earlier = earlier
        return self._measured(self._grow(before, said, ids, known), turn, looking)

    def _measured(
        self, steps: Generator[None, None, None], turn: int, looking: object
    ) -> Steps[None]:
        """The steps of one search, for as long as it is the one that goes on."""
        if self._looking is not looking:
            return
        self._let_go()  # of what an earlier search holds that has not noticed yet that it is over
        self._turn_to(turn)
        wall, processor = self._clocks
        self._running = running = processor.steps(wall.steps(steps))
        try:
            while self._looking is looking and self._left:
                self._left -= 1
                if next(running, running) is running:
                    return
                yield None
        finally:
            if self._running is running:
                self._let_go()

    def _let_go(self) -> None:
        """End the search that runs, and free its caches."""
        if self._running is None:
            return
        self._running.close()
        self._running = None
        self._speculator.release()
        wall, processor = self._clocks
        self._counters.branch_ms += wall.take()
        self._counters.branch_processor_ms += processor.take()

    def _turn_to(self, turn: int) -> None:
        if turn != self._turn:
            self._turn, self._replies = turn, []
            self._left = PASSES + STEPS * self._most

    @torch.inference_mode()
    def _grow(
        self, before: Sequence[int], said: str, ids: Sequence[int], known: KvCache
    ) -> Generator[None, None, None]:
        template, cache = self._template, self._speculator.cache
        prompt = [*before, *template.content(said)]
        most = max(AT_ONCE * PASSES, PASSES + len(template.user_to_reply) + TOKENS)
        if not prompt or len(prompt) + most > cache.capacity:
            return
        cache.fork(known, min(common(prompt, ids), len(prompt) - 1))
        yield from self._speculator.prefill(prompt[:-1])
        begun, held = list[Tokens](), prompt
        for words in (yield from self._texts(prompt)):
            rest = self._tokenizer.decode(words, clean_up_tokenization_spaces=False)
            asked = [*before, *template.content(said + rest), *template.user_to_reply]
            self._speculator.rollback(common(held, asked))
            reply = yield from self._reply(asked, begun)
            held = [*asked, *reply]
            if reply not in begun:
                begun.append(reply)
            if len(begun) == self._most:
                return

    def _texts(self, prompt: Sequence[int]) -> Generator[None, None, list[Tokens]]:
        """What the user is likely to say after the prompt, whose last token is yet to be read."""
        target, cache, parents = self._target, self._speculator.cache, list[int]()

        def extend(follows: Sequence[int], tokens: Sequence[int]) -> Tensor:
            parents.extend(follows)
            ids = torch.tensor(tokens, device=target.device)
            return target.forward_tree(ids, cache, Tree(tuple(parents)), len(tokens))

        root = target.forward(torch.tensor(prompt[-1:], device=target.device), cache, 1)[0]
        yield None
        end, count = self._template.user_to_reply[0], TEXTS * self._most
        return (yield from most_likely(root, extend, end, count=count, passes=PASSES))

    def _reply(
        self, asked: Sequence[int], begun: Sequence[Tokens]
    ) -> Generator[None, None, Tokens]:
        """The beginning of the reply to a prompt; what others begin with is not decoded again."""
        assert self._turn is not None
        reply: Tokens = ()
        step = yield from self._speculator.revise(asked, (), self._turn, 0, earlier=self._earlier)
        while True:
            self._counters.branch_tokens += len(step.tokens)
            reply += tuple(step.tokens)
            end = next((at for at, token in enumerate(reply) if token in self._eos), TOKENS)
            reply = reply[: min(end + 1, TOKENS)]
            newest = [*begun, reply]
            self._replies = newest + [one for one in self._replies if one not in newest]
            yield None
            if len(reply) in (end + 1, TOKENS):
                return reply
            known = [*asked, *reply]
            if guess := self.after(reply):
                step = self._speculator.offer(known, guess)
            else:
                step = yield from self._speculator.round(known, TOKENS - len(reply))
