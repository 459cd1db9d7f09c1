"""Branches: replies to what the user is likely to say next, begun before they have said it.

The language model itself tells what that is: it has read users as well as assistants. Each branch
is its reply to a whole text that it finds likely, in the same words that the reply itself would
have. When the user has finished, whatever branch begins as the reply does is offered as its draft.
The target verifies it like any other, so a branch may be good for words that nobody foresaw:
"shorter, please" and "make it shorter" have one answer.

This module does not know when there is time for that.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from time import thread_time
from typing import Any

import torch
from torch import Tensor

from voiceloop.engines import Steps
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import Decoder
from voiceloop.llm.likely import most_likely
from voiceloop.llm.speculate import Speculator
from voiceloop.llm.stats import LlmCounters
from voiceloop.llm.stopwatch import Stopwatch
from voiceloop.llm.template import ChatTemplate
from voiceloop.llm.translation import common

PASSES = 16
"""Passes of the search for what the user may say, for each branch that may be begun."""
TEXTS = 3
"""Likely texts that are answered at most, for each branch: many have the same answer."""
LONGEST = 24
"""Tokens of what the user is yet to say."""
TOKENS = 24
"""Tokens of each reply: about its first clause."""

Tokens = tuple[int, ...]


class Branches:
    """The branches of one conversation. They compute in a cache of their own, which is there for
    as long as they do."""

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
        """`speculator` is the target's, without a draft and with the conversation's sampling, which
        must not be that of rejection: a branch would be verified by the numbers that chose it.
        At most so many are begun at a time; `counters` are the conversation's."""
        self._target = target
        self._speculator = speculator
        self._template = template
        self._tokenizer = tokenizer
        self._eos = eos
        self._most = most
        self._counters = counters
        self._clocks = Stopwatch(target.device), Stopwatch(torch.device("cpu"), thread_time)
        self._turn: int | None = None
        self._replies: list[Tokens] = []
        """Those that were begun for the turn, the newest first."""
        self._rows: Sequence[int] = ()
        """Ids whose beginning the cache holds."""
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
        self, before: Sequence[int], said: str, turn: int, ids: Sequence[int], known: KvCache
    ) -> Steps[None]:
        """Begin replies to what the user may say in `turn` after `before`; they have `said` the
        beginning of it. The cache `known` holds rows of a beginning of `ids`.

        Pauses after each pass, and may be closed there. It ends with the next `begin`.
        """
        self._looking = looking = object()
        return self._measured(self._grow(before, said, turn, ids, known, looking))

    def _measured(self, steps: Generator[None, None, None]) -> Steps[None]:
        wall, processor = self._clocks
        try:
            yield from processor.steps(wall.steps(steps))
        finally:
            self._speculator.release()
            self._rows = ()
            self._counters.branch_ms += wall.take()
            self._counters.branch_processor_ms += processor.take()

    @torch.inference_mode()
    def _grow(
        self,
        before: Sequence[int],
        said: str,
        turn: int,
        ids: Sequence[int],
        known: KvCache,
        looking: object,
    ) -> Generator[None, None, None]:
        template, most = self._template, self._most
        prompt = [*before, *template.content(said)]
        longest = len(prompt) + LONGEST + len(template.user_to_reply) + TOKENS
        fits = prompt and longest <= self._speculator.cache.capacity
        if self._looking is not looking or not fits:
            return
        self._turn_to(turn)
        self._speculator.cache.fork(known, min(common(prompt, ids), len(prompt) - 1))
        self._rows = prompt
        yield from self._speculator.prefill(prompt[:-1])
        begun, texts = list[Tokens](), TEXTS * most
        after, end = partial(self._after, prompt), template.user_to_reply[0]
        for words in most_likely(after, end, PASSES * most, LONGEST):
            if words is None:
                yield None
            else:
                texts -= 1
                rest = self._tokenizer.decode(words, clean_up_tokenization_spaces=False)
                asked = template.content(said + rest) + template.user_to_reply
                reply = yield from self._reply([*before, *asked], looking)
                begun += [reply] if reply not in begun else []
            if self._looking is not looking:
                return
            self._replies = begun + [one for one in self._replies if one not in begun]
            if len(begun) == most or not texts:
                return

    def _turn_to(self, turn: int) -> None:
        if turn != self._turn:
            self._turn, self._replies = turn, []

    def _reply(self, asked: Sequence[int], looking: object) -> Generator[None, None, Tokens]:
        """The beginning of the reply to a prompt; what others begin with is not decoded again."""
        assert self._turn is not None
        reply: Tokens = ()
        self._follow(asked)
        step = yield from self._speculator.revise(asked, (), self._turn, 0)
        while self._looking is looking:
            reply += tuple(step.tokens)
            self._counters.branch_tokens += len(step.tokens)
            end = next((at for at, token in enumerate(reply) if token in self._eos), TOKENS)
            if len(reply) > end or len(reply) >= TOKENS:
                return reply[: end + 1]
            yield None
            self._follow([*asked, *reply])
            step = self._speculator.offer(self._rows, self.after(reply))
        return reply

    def _after(self, prompt: Sequence[int], words: Tokens) -> Tensor:
        """Logits after the prompt and some words, [vocab]."""
        self._follow([*prompt, *words])
        cache = self._speculator.cache
        unseen = torch.tensor(self._rows[cache.length :], device=self._target.device)
        return self._target.forward(unseen, cache, 1)[0]

    def _follow(self, ids: Sequence[int]) -> None:
        """Keep the rows of what `ids` begin with, but for the last, whose logits are wanted."""
        self._speculator.rollback(min(common(self._rows, ids), len(ids) - 1))
        self._rows = ids
