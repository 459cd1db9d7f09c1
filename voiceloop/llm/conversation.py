"""One conversation with the built-in model: its turns, its token ids, and how much of each reply
was heard.

The ids are in the order `opening, text, user_to_reply, reply, reply_to_user, text, …`. A text is
what the user says. `opening`, `user_to_reply` and `reply_to_user` are the chat template's tokens
around texts and replies. Only texts are tokenised; replies keep the ids that the model chose. An
exchange reaches from the beginning of one text to the beginning of the next. This module does not
know how tokens are decided.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

from voiceloop.engines import ConversationStanding, Steps
from voiceloop.errors import EngineError
from voiceloop.languages import bare
from voiceloop.llm.decode.hook import ReplyHook
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.model.cache import MEMORY_HINT, CachePool, Group
from voiceloop.llm.rules.stats import LlmCounters, Step
from voiceloop.llm.text.messages import TOKEN_CHARS, least, least_of_exchange, least_of_opening
from voiceloop.llm.text.output import (
    CallOutput,
    Detokenizer,
    Echo,
    Output,
    SpeechOutput,
    to_sentence_end,
)
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.llm.text.translation import common
from voiceloop.placement import memory_for
from voiceloop.settings.schema import nearest
from voiceloop.types import Begun, Past, TokenBurst, Tool, ToolCall

LAST_SENTENCE = 0.6
"""Share of `max_new_tokens` after which a reply ends with its current sentence."""


@dataclass(slots=True)
class _TurnRequest:
    """The user's current turn, as far as it is known."""

    turn: int | None = None
    """The number of the turn; None before the first turn."""
    before: str = ""
    """The text of earlier turns whose replies were cut to nothing. The current turn continues
    it."""
    said: str = ""
    """The user's whole text, with `before` at its beginning."""
    bare: int = 0
    """The number of ids from the beginning of the conversation to the end of the text, without the
    punctuation at the end. 0 if that place is not known."""
    old: Sequence[int] = ()
    """The decided tokens of the last reply to this turn, which a new reply to the turn replaces.
    Empty if there is none or if it may not be used."""


@dataclass(slots=True)
class _ReplyState:
    """The reply to the user's last turn, so far. Its fields say where it is in the conversation's
    ids, which "the ids" below means, and what was heard of it."""

    turn: int
    request_end: int
    """The index in the ids just after the user's text."""
    start: int
    """The index in the ids of the reply's first token."""
    chosen: int = 0
    """The number of tokens that the target has decided in this turn, with tokens that end a
    reply."""
    own: list[int] = field(default_factory=list[int])
    """The tokens that the target has decided, up to and with the token that ended the reply. Tokens
    after a tool's result are left out."""
    spoken: list[int] = field(default_factory=list[int])
    """The index in the ids of each token that was sent in a burst."""
    recited: Sequence[int] = ()
    """The tokens that were spoken of an effect, which are not among the ids."""
    calls: int = 0
    text: str = ""
    """The text that was sent in bursts."""
    avoided: int | None = None
    """A token that the reply may not begin with, because a reply that began with it was an echo of
    the user; None if any token is allowed."""
    call: Sequence[int] = ()
    """The ids with which the reply has to begin so that it calls a required tool. After a tool's
    result, the rest of the reply begins with these ids too. Empty if the reply may be text."""
    returned: bool = False
    """Whether a tool has returned its result."""
    finished: bool = False
    limited: bool = False
    """Whether the reply is finished because it reached the limit of tokens."""


class SpeculativeConversation:
    """A conversation whose replies are decoded speculatively.

    Some of its attributes belong to the dialogue, the others to the work of the two models.
    """

    effort: str | None = None
    parallel_calls = True

    def __init__(
        self,
        speculator: Speculator,
        template: ChatTemplate,
        tokenizer: Any,
        *,
        pool: CachePool,
        caches: Group,
        eos: frozenset[int],
        system: str,
        max_new_tokens: int,
        stop: Sequence[str] = (),
        hook: ReplyHook | None = None,
    ) -> None:
        """Begin with the system prompt `system`. `caches` are those of the `speculator`. `pool` may
        take their memory, but not while a step runs. `eos` are the tokens that end a reply. A reply
        also ends before the first of the `stop` strings. `hook` may change how replies are
        decided."""
        self.hook = hook or ReplyHook()
        self._speculator = speculator
        self._template = template
        self._tokenizer = tokenizer
        self._pool = pool
        self._caches = caches
        self._eos = eos
        self._stop = tuple(stop)
        self._max_new_tokens = max_new_tokens
        self._ids = template.opening(system)
        self._starts = [len(self._ids)]
        """The index in the ids of each exchange's user text; the last one is for the current
        exchange."""
        self._reply_tokens: list[frozenset[int]] = []
        """The tokens of the reply of each closed exchange."""
        self._request = _TurnRequest()
        self._reply: _ReplyState | None = None
        self._required: Sequence[str] = ()
        """The tools of which each reply has to call one; empty if replies may be text."""
        self._call: Sequence[int] = ()
        """The ids with which all calls of the required tools begin; empty if replies may be
        text."""
        self._calls = frozenset[int]()
        """The tokens with which a call begins; empty if no tools are offered."""
        self.standing = ConversationStanding()

    @property
    def _capacity(self) -> int:
        """The maximum number of ids: the size of the context in tokens."""
        return self._speculator.cache.capacity

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids, from the system prompt on."""
        return tuple(self._ids)

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
            self._set_request(text, suffix=[])
            self._request.bare = len(self._ids)
            yield from self._read_opening()
            yield from self._speculator.prefill(self._ids)

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        with self._held():
            self._begin(turn)
            self._request.old = ()
            yield from self._answer_to(text, turn)

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer again. The tokens of the old reply are the draft tokens of the new one."""
        with self._held():
            self._begin(turn)
            yield from self._answer_to(text, turn)

    def recite(
        self, text: str, turn: int, reply: str, effect: ToolCall | None = None
    ) -> Steps[TokenBurst]:
        """Answer with the text `reply`, cut to the length that fits into the context. If there is
        an `effect`, only its call and result become part of the context, if they fit."""
        self._begin(turn)
        recited = self._open_reply(text, turn)
        ids = self._template.words([reply])
        if effect is None:
            ids = ids[: self._capacity - len(self._ids)]
            recited.spoken = list(range(recited.start, recited.start + len(ids)))
            self._ids += ids
        else:
            done = self._template.called([(effect, effect.result)])
            self._ids += done[: self._capacity - len(self._ids)]
            recited.recited = ids
        recited.finished = True
        self._reply = recited
        self._note()
        detokenizer = Detokenizer(self._tokenizer)
        pieces = [detokenizer.push(token) for token in ids]
        ends = tuple(accumulate(map(len, pieces)))
        yield TokenBurst(turn, tuple(ids), "".join(pieces), ends=ends)

    def catch_up(self) -> Steps[None]:
        """Compute the cache rows of all ids that the caches lack, such as those of a recited
        reply."""
        with self._held():
            yield from self._read_opening()
            yield from self._speculator.prefill(tuple(self._ids))

    def ahead(self, text: str, turn: int) -> Steps[int | Begun] | None:
        if self._call:
            return None
        return self.hook.ahead(turn, partial(self._prompt_ahead, text, turn), self._output)

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int, say: str = ""
    ) -> Steps[TokenBurst | ToolCall]:
        """Continue the reply after the results of its tools, by `say` if there is such a text.
        Yield nothing if the reply belongs to another turn or was cut to nothing."""
        reply = self._reply
        if reply is None or reply.turn != turn or len(self._ids) <= reply.start:
            return
        ids = self._template.tool_results([(call.name, text) for call, text in returned])
        own = self._template.words([say]) if say else []
        if len(self._ids) + len(ids) + len(own or self._call) >= self._capacity:
            names = " and ".join(call.name for call, _ in returned)
            raise _too_long(f"the result of {names}", self._capacity)
        self._ids += ids
        reply.returned, reply.call = True, self._call
        if say:
            reply.spoken += range(len(self._ids), len(self._ids) + len(own))
            reply.finished = True
            self._ids += own
            yield TokenBurst(turn, tuple(own), say)
            return
        with self._held():
            yield from self._answer(reply)

    def heard(self, tokens: int) -> str:
        """Cut the last reply after its first `tokens` spoken tokens, and return the text that is
        kept. With 0 nothing is kept, not even tool calls. A finished reply of at most `tokens`
        spoken tokens stays whole."""
        reply = self._reply
        if reply is None:
            return ""
        if reply.recited:
            return self._decoded(reply.recited[: max(tokens, 0)])
        if tokens <= 0 or not reply.spoken:
            self._truncate(reply.request_end)
        elif tokens < len(reply.spoken) or not reply.finished:
            self._truncate(reply.spoken[:tokens][-1] + 1)
        del reply.spoken[max(tokens, 0) :]
        return self._decoded([self._ids[place] for place in reply.spoken])

    def _decoded(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        template = self._template
        self._required, self._call = tuple(required), template.call_of(required)
        self._calls = template.call_beginnings if tools else frozenset()
        opening = template.opening(system[: TOKEN_CHARS * self._capacity], tools)
        turns, room = list[list[int]](), self._capacity // 2 - len(opening)
        for one in reversed(past):
            exchange = template.exchange(one) if least_of_exchange(one) <= room else None
            if exchange is None or len(exchange) > room:
                break
            room -= len(exchange)
            turns.insert(0, exchange)
        kept = past[len(past) - len(turns) :]
        words = [[part for part in one.replied if isinstance(part, str)] for one in kept]
        replies = [template.words(own) for own in words]
        self._speculator.stats.total.dropped_turns += len(past) - len(kept)
        ids, starts = opening, [len(opening)]
        for turn in turns:
            ids = ids + turn
            starts.append(len(ids))
        same = common(self._ids, ids)
        self._truncate(same)
        self._ids += ids[same:]
        self._starts, self._reply_tokens = starts, [frozenset(reply) for reply in replies]
        self._request, self._reply = _TurnRequest(), None
        self._note()

    def calls(self, tools: Sequence[Tool]) -> bool:
        return bool(self._template.call_of([tool.name for tool in tools]))

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        """Return the number of tokens of the opening, and the maximum of this number: three
        quarters of the context. The rest of the context is for the dialogue. If the text is clearly
        too long, the number is only a lower bound."""
        most = self._capacity * 3 // 4
        count = least_of_opening(system, tools)
        return count if count > most else len(self._template.opening(system, tools)), most

    def close(self) -> None:
        self._speculator.release()
        self._pool.forget(self._caches)

    def _read_opening(self) -> Steps[None]:
        """Compute or copy the rows of the opening except the last one. What a decoder has to
        prepare, e.g. a context of llama.cpp, it prepares for that one, and not for the words."""
        return self._speculator.open(self._ids[: max(0, self._starts[0] - 1)])

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

    def _note(self) -> None:
        """Replace `standing` by the present state.

        The end probability is the sum of the probabilities of the tokens that close a turn and of
        the marks that end a sentence. After `prefill` it refers to the end of the text. After
        `reply` it refers to the end of the text without its final punctuation.
        """
        self.standing = ConversationStanding(
            exchanges=len(self._starts) - 1,
            tokens_read=self._speculator.stats.total.prefilled,
            limited=self._reply is not None and self._reply.limited,
            end_probability=self._speculator.ending(self._request.bare),
        )

    def _prompt_ahead(self, text: str, turn: int) -> tuple[Prompt, int]:
        """Return the prompt that ends with `text`, and the number of its first ids that are equal
        to those of the conversation. `text` is the beginning of the user's words in `turn`."""
        before, carried = self._before(turn)
        words = self._template.content(f"{carried} {text}".strip())
        earlier = self._earlier(words, None if turn == self._request.turn else self._reply)
        ids = [*before, *words]
        return Prompt(ids, turn, earlier=earlier), common(ids, self._ids)

    def _before(self, turn: int) -> tuple[list[int], str]:
        """Return the ids before the user's text of `turn`, and the text of earlier turns that
        continues in `turn`. The last reply counts as heard to its end."""
        reply, request = self._reply, self._request
        if turn != request.turn and reply is not None and len(self._ids) > reply.start:
            return self._ids + self._template.reply_to_user, ""
        goes_on = turn == request.turn or reply is None
        return self._ids[: self._starts[-1]], request.before if goes_on else request.said

    def _begin(self, turn: int) -> None:
        """Prepare for the user's `turn`.

        If the turn is new, the reply to the turn before it is looked at. If something of it is
        kept, the exchange is closed. If it was cut to nothing, the text of that turn becomes the
        beginning of the new turn. If it was never begun, that text is dropped.
        """
        self.hook.begin(turn)
        reply, self._reply = self._reply, None
        request = self._request
        if turn == request.turn:
            if reply is not None and reply.own:  # an empty reply replaces no earlier one
                request.old = reply.own
            return
        before = request.before
        if reply is not None and len(self._ids) > reply.start:
            self._reply_tokens.append(self._spoken(reply))
            self._ids += self._template.reply_to_user
            self._starts.append(len(self._ids))
            before = ""
        elif reply is not None:
            before = request.said
        self._request = _TurnRequest(turn, before)

    def _set_request(self, text: str, suffix: list[int]) -> None:
        """Replace the ids of the user's turn by those of `text` and `suffix`. The caches keep the
        rows of all ids before the first one that changes."""
        whole = f"{self._request.before} {text}".strip()
        if least(whole) > self._capacity:
            raise _too_long("what the user said", self._capacity)
        tail = self._template.content(whole) + suffix
        self._make_room(len(tail) + len(self._template.user_to_reply) + len(self._call))
        self._request.said = whole
        start = self._starts[-1]
        same = common(self._ids[start:], tail)
        self._truncate(start + same)
        self._ids += tail[same:]

    def _make_room(self, tokens: int) -> None:
        """Forget the oldest exchanges if the context has no room for `tokens` more tokens and a
        reply.

        The exchanges that are kept must be read again. So they get at most half of the context: if
        only one exchange were forgotten each time, every later turn would read the whole context
        again. Raises EngineError if the context has no room even without exchanges.
        """
        wanted = tokens + min(self._max_new_tokens, self._capacity // 4)
        if self._starts[0] + tokens >= self._capacity:
            raise _too_long("what the user said", self._capacity)
        if self._starts[-1] + wanted <= self._capacity:
            return
        most = min(self._capacity // 2, self._capacity - wanted)
        while self._starts[-1] > most and len(self._starts) > 1:
            first, second = self._starts[:2]
            self._speculator.rollback(first)
            del self._ids[first:second]
            self._starts = [first, *(start - second + first for start in self._starts[2:])]
            del self._reply_tokens[0]
            self._speculator.stats.total.dropped_turns += 1

    def _truncate(self, length: int) -> None:
        self._speculator.rollback(length)
        del self._ids[length:]

    def _answer_to(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer `text`. A reply that only repeats the user's words is not yielded; another reply
        with a different first token is decoded instead."""
        self._reply = reply = self._open_reply(text, turn)
        yield from self._read_opening()
        if reply.call:
            yield from self._call_by(reply)
            return
        echo, held = Echo(self._request.said), list[TokenBurst]()
        for item in self._answer(reply):
            if item is None:
                yield None  # only lets other work go on, so what is held stays held
            elif isinstance(item, TokenBurst) and echo.push(item.text):
                held.append(item)
                yield None
            else:
                yield from held
                held.clear()
                yield item
        if not (held and echo.whole and reply.finished):
            yield from held
            return
        # The whole reply is an echo: decode another one that does not begin with the same token.
        yield from self._again(
            _ReplyState(turn, reply.request_end, reply.start, avoided=reply.own[0])
        )

    def _again(self, reply: _ReplyState) -> Steps[TokenBurst | ToolCall]:
        """Remove the tokens of the last reply, and decode another one. `reply` is its state, still
        empty."""
        self._truncate(reply.start)
        self._request.old, self._reply = (), reply
        yield from self._answer(reply)

    def _call_by(self, reply: _ReplyState) -> Steps[TokenBurst | ToolCall]:
        """Let the target call a tool. If it calls a tool that is not required first, the required
        tool with the most similar name is called instead, and nothing of the first reply stays."""
        answer, held = self._answer(reply), list[TokenBurst]()
        for item in answer:
            if isinstance(item, ToolCall):
                if item.name not in self._required:
                    answer.close()
                    break
                yield from held
                yield item
                yield from answer
                return
            held += [] if item is None else [item]
            yield None
        else:
            yield from held
            return
        name = nearest(item.name, self._required) or self._required[0]
        call = self._template.call_of([name])
        yield from self._again(_ReplyState(reply.turn, reply.request_end, reply.start, call=call))

    def _open_reply(self, text: str, turn: int) -> _ReplyState:
        """Put the user's whole turn at the end of the ids; return the reply that begins there."""
        self._set_request(text, suffix=self._template.user_to_reply)
        start, text_start = len(self._ids), self._starts[-1]
        words = self._template.content(bare(self._request.said))
        known = self._ids[text_start : text_start + len(words)] == words
        self._request.bare = text_start + len(words) if known else 0
        return _ReplyState(turn, start - len(self._template.user_to_reply), start, call=self._call)

    def _answer(self, reply: _ReplyState) -> Steps[TokenBurst | ToolCall]:
        """Decode `reply` until it is over, and yield its bursts and calls."""
        reply.finished = False
        base, last = len(self._ids), reply.chosen + self._max_new_tokens
        late = round(self._max_new_tokens * LAST_SENTENCE)
        output = self._output(reply.call)
        self._ids += reply.call
        most = min(self._max_new_tokens, self._capacity - len(self._ids))
        step = yield from self._first(reply, most)
        ready = False
        while True:
            kept = self._keep(step.tokens, reply)
            left = min(last - reply.chosen, self._capacity - len(self._ids))
            ended = len(kept) < len(step.tokens)
            reply.finished = ended or left <= 0
            items = output.push(kept)
            items, end = to_sentence_end(items, reply.text, late)
            if (stopped := output.stopped if end is None else end) is not None:
                self._truncate(base + stopped)
                reply.finished = True
            reply.limited = end is not None or not (ended or output.stopped is not None or left > 0)
            if reply.finished and end is None:
                items += output.finish()
            self._note()
            yield from _deliver(items, step, reply, base)
            if reply.finished:
                return
            further: Step | None = None
            if not (reply.returned or reply.call):
                further = self.hook.further(self._ids, reply.own, left)
            if further is not None:
                step = further
                continue
            if not ready:
                yield from self._speculator.prefill_draft(self._ids[:-1])
                ready = True
            step = yield from self._speculator.round(self._ids, left)

    def _first(self, reply: _ReplyState, most: int) -> Generator[None, None, Step]:
        """Decide the first tokens of `reply` or of its continuation, which may have `most`
        tokens."""
        words = self._ids[self._starts[-1] : reply.request_end]
        earlier = self._earlier(words, reply if reply.returned else None)
        prompt = Prompt(
            self._ids,
            reply.turn,
            position=reply.chosen,
            watched=self._request.bare,
            earlier=earlier,
            avoided=reply.avoided,
            calls=frozenset() if reply.call else self._calls,
        )
        first = self.hook.first(prompt, most, partial(self._output, reply.call))
        if first is not None:
            return first
        # At most `most` - 1 old tokens leave room for the token that the target adds.
        old = () if reply.returned else self._request.old[: most - 1]
        return self._speculator.revise(prompt, old)

    def _spoken(self, reply: _ReplyState) -> frozenset[int]:
        """Return the tokens of `reply` that were sent in bursts, without those that `heard` cut
        off."""
        return frozenset(self._ids[place] for place in reply.spoken)

    def _earlier(self, words: Sequence[int], reply: _ReplyState | None) -> frozenset[int]:
        """Return the tokens of all closed exchanges' replies, of `reply` and of `words`."""
        return frozenset(words).union(
            *self._reply_tokens, () if reply is None else self._spoken(reply)
        )

    def _output(self, begun: Sequence[int] = ()) -> Output:
        """Make the converter from tokens to text for a reply that begins with the tokens
        `begun`."""
        thinking, call = self._template.thinks_first, self._template.call
        output = Output(self._tokenizer, thinking=thinking, stop=self._stop, call=call)
        output.push(begun)
        return output

    def _end(self, ids: Sequence[int]) -> int:
        """Return how many of `ids` come before the token that ends the reply."""
        return next((i for i, token in enumerate(ids) if token in self._eos), len(ids))

    def _keep(self, ids: Sequence[int], reply: _ReplyState) -> Sequence[int]:
        """Add `ids` to the conversation and return them. The token that ends the reply is left out,
        and all tokens after it."""
        end = self._end(ids)
        reply.chosen += min(end + 1, len(ids))
        if not reply.returned:
            reply.own += ids[: end + 1]
        self._ids += ids[:end]
        self._speculator.rollback(len(self._ids))
        return ids[:end]


def _deliver(
    items: Sequence[SpeechOutput | CallOutput], step: Step, reply: _ReplyState, base: int
) -> Steps[TokenBurst | ToolCall]:
    """Yield the bursts and calls of one step. The step's counts of draft tokens and its facts go
    with the first burst. `base` is the index, in the conversation's ids, of the output's first
    token."""
    if not items:
        yield None
    drafted, accepted, facts = step.drafted, step.accepted, step.facts
    for item in items:
        if isinstance(item, SpeechOutput):
            reply.text += item.text
            reply.spoken += [base + place for place in item.places]
            among = min(accepted, len(item.ids))
            yield TokenBurst(reply.turn, item.ids, item.text, drafted, among, item.ends, facts)
            drafted, accepted, facts = 0, 0, {}
        else:
            reply.calls += 1
            call_id = f"call_{reply.turn}_{reply.calls}"
            yield ToolCall(reply.turn, call_id, item.name, item.arguments, item.ids, item.problem)


def _too_long(what: str, capacity: int) -> EngineError:
    return EngineError(
        f"{what} does not fit into a context of {capacity} tokens",
        "say less, or raise llm.context",
    )
