"""One conversation with the built-in model: what it reads, its replies, and how much of each was
heard.

The module `tokenhistory` keeps the token ids, and `replies` decodes replies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate

from voiceloop.engines import ConversationStanding, Steps, T
from voiceloop.llm.model.cache import MEMORY_HINT, CachePool, Group
from voiceloop.llm.replies import ReplyDecoder
from voiceloop.llm.rules.stats import LlmCounters
from voiceloop.llm.text.messages import least_of_opening
from voiceloop.llm.text.output import Detokenizer
from voiceloop.placement import memory_for
from voiceloop.types import Past, TokenBurst, Tool, ToolCall


class SpeculativeConversation:
    """A conversation whose replies are decoded speculatively."""

    effort: str | None = None
    parallel_calls = True

    def __init__(self, decoder: ReplyDecoder, pool: CachePool, caches: Group) -> None:
        """`caches` are those of the decoder's speculator. `pool` may take their memory, but not
        while a step runs."""
        self.standing = ConversationStanding()
        self.hook = decoder.hook
        self._decoder = decoder
        self._history = decoder.history
        self._speculator = self._history.speculator
        self._template = self._history.template
        self._pool = pool
        self._caches = caches

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids, from the system prompt on."""
        return tuple(self._history.ids)

    @property
    def counters(self) -> LlmCounters:
        """A copy of the counters of tokens, passes and milliseconds of this conversation."""
        return self._speculator.stats.counters

    @property
    def seed(self) -> int | None:
        return self._speculator.seed

    def prefill(self, text: str, turn: int) -> Steps[None]:
        """Compute the rows of all tokens of `text`: the end probability needs the last tokens too.
        If a later text has other last tokens, only the rows of these tokens are computed again."""
        with self._held():
            self._begin(turn)
            self._history.read(text)
            yield from self._noted(self._decoder.read_opening())
            yield from self._noted(self._speculator.prefill(self._history.ids))

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        with self._held():
            self._begin(turn)
            self._history.request.old = ()
            yield from self._noted(self._decoder.answer_to(text, turn))

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer again. The tokens of the old reply are the draft tokens of the new one."""
        with self._held():
            self._begin(turn)
            yield from self._noted(self._decoder.answer_to(text, turn))

    def recite(
        self, text: str, turn: int, reply: str, effect: ToolCall | None = None
    ) -> Steps[TokenBurst]:
        """Answer with the text `reply`, cut to the length that fits into the context. If there is
        an `effect`, only its call and result become part of the context, if they fit."""
        self._begin(turn)
        recited = self._history.open_reply(text, turn)
        ids: Sequence[int] = self._template.words([reply])
        if effect is None:
            ids = self._history.add(ids)
            recited.spoken = list(range(recited.start, recited.start + len(ids)))
        else:
            self._history.add(self._template.called([(effect, effect.result)]))
            recited.recited = ids
        recited.finished = True
        self._note()
        detokenizer = Detokenizer(self._decoder.tokenizer)
        pieces = [detokenizer.push(token) for token in ids]
        ends = tuple(accumulate(map(len, pieces)))
        yield TokenBurst(turn, tuple(ids), "".join(pieces), ends=ends)

    def catch_up(self) -> Steps[None]:
        """Compute the cache rows of all ids that the caches lack, such as those of a recited
        reply."""
        with self._held():
            yield from self._noted(self._decoder.read_opening())
            yield from self._noted(self._speculator.prefill(self.ids))

    def ahead(self, text: str, turn: int) -> Steps[int] | None:
        if self._history.call:
            return None
        prompt = partial(self._history.prompt_ahead, text, turn)
        return self.hook.ahead(turn, prompt, self._decoder.output)

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int, say: str = ""
    ) -> Steps[TokenBurst | ToolCall]:
        """Continue the reply after the results of its tools, by `say` if there is such a text.
        Yield nothing if the reply belongs to another turn or was cut to nothing."""
        history, reply = self._history, self._history.reply
        if reply is None or reply.turn != turn or len(history.ids) <= reply.start:
            return
        ids = self._template.tool_results([(call.name, text) for call, text in returned])
        own = self._template.words([say]) if say else []
        if len(history.ids) + len(ids) + len(own or history.call) >= history.capacity:
            names = " and ".join(call.name for call, _ in returned)
            raise history.too_long(f"the result of {names}")
        history.add(ids)
        reply.returned, reply.call = True, history.call
        if say:
            reply.spoken += range(len(history.ids), len(history.ids) + len(own))
            reply.finished = True
            history.add(own)
            yield TokenBurst(turn, tuple(own), say)
            return
        with self._held():
            yield from self._noted(self._decoder.answer(reply))

    def heard(self, tokens: int) -> str:
        """Cut the last reply after its first `tokens` spoken tokens, and return the text that is
        kept. With 0 nothing is kept, not even tool calls. A finished reply of at most `tokens`
        spoken tokens stays whole."""
        kept, tokenizer = list(self._history.cut(tokens)), self._decoder.tokenizer
        return tokenizer.decode(kept, clean_up_tokenization_spaces=False)

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        self._decoder.required = tuple(required)
        self._history.rewrite(system, past, tools, required)
        self._note()

    def calls(self, tools: Sequence[Tool]) -> bool:
        return bool(self._template.call_of([tool.name for tool in tools]))

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        """Return the number of tokens of the opening, and the maximum of this number: three
        quarters of the context. The rest of the context is for the dialogue. If the text is clearly
        too long, the number is only a lower bound."""
        most = self._history.capacity * 3 // 4
        count = least_of_opening(system, tools)
        return count if count > most else len(self._template.opening(system, tools)), most

    def close(self) -> None:
        self._speculator.release()
        self._pool.forget(self._caches)

    def _begin(self, turn: int) -> None:
        self.hook.begin(turn)
        self._history.begin(turn)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep the caches from being evicted while the models compute."""
        memory = memory_for("what a conversation computes", MEMORY_HINT)
        with self._pool.hold(self._caches) as evicted, memory:
            if evicted:
                self._speculator.rollback(0)
                self._speculator.stats.total.evictions += 1
            try:
                yield
            finally:
                self._note()

    def _noted(self, steps: Steps[T]) -> Steps[T]:
        """Run `steps`, and replace `standing` before each of their results."""
        for item in steps:
            self._note()
            yield item

    def _note(self) -> None:
        """Replace `standing` by the present state.

        The end probability is the sum of the probabilities of the tokens that close a turn and of
        the marks that end a sentence. After `prefill` it refers to the end of the text. After
        `reply` it refers to the end of the text without its final punctuation.
        """
        reply = self._history.reply
        self.standing = ConversationStanding(
            exchanges=self._history.exchanges,
            tokens_read=self._speculator.stats.total.prefilled,
            limited=reply is not None and reply.limited,
            end_probability=self._speculator.ending(self._history.request.bare),
        )
