"""One conversation: whose turn it is, which token ids it consists of, and what was heard of them.

The ids are the truth: replies keep the ids the model chose, and only what the user says is
tokenised. The sequence is `opening, text, user_to_reply, reply, reply_to_user, text, …`; an
exchange is what lies between the beginnings of two user texts. This module knows neither how
tokens are decided nor what becomes of them.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, groupby
from typing import Any, cast

from voiceloop.calibration.probability import bare
from voiceloop.engines import Steps
from voiceloop.errors import EngineError
from voiceloop.llm.decode.hook import ReplyHook
from voiceloop.llm.decode.speculate import Prompt, Speculator
from voiceloop.llm.model.cache import CachePool, Group
from voiceloop.llm.rules.stats import LlmCounters, Step
from voiceloop.llm.text.output import Call, Detokenizer, Output, Speech
from voiceloop.llm.text.spoken import Echo, sentence_end
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.llm.text.translation import common
from voiceloop.llm.text.wording import BROKEN_OFF
from voiceloop.placement import memory_for
from voiceloop.schema import nearest
from voiceloop.types import Begun, Past, TokenBurst, Tool, ToolCall, spaced

LAST_SENTENCE = 0.6
"""Of the tokens that a reply may have at most: the sentence that they lie in is its last."""
MEMORY_HINT = "set llm.context or llm.cache_mb lower, or allow fewer sessions"


@dataclass(slots=True)
class _Asked:
    """What the user says, as far as it has come."""

    turn: int | None = None
    """The number of their current turn; None before the first."""
    before: str = ""
    """What earlier turns without a reply contributed to it."""
    said: str = ""
    """All that they say in it, that included."""
    bare: int = 0
    """How many ids there are up to the end of their words, without punctuation."""
    old: Sequence[int] = ()
    """The ids of the reply to this turn that was taken out last."""


@dataclass(slots=True)
class _Reply:
    """The reply to the last user turn, as far as it has come: its fields are where it stands, how
    it has to begin, and what it is so far."""

    turn: int
    asked: int
    """Index in the ids after the user's text."""
    start: int
    """Index of the reply's first token."""
    chosen: int = 0
    """Tokens that the target has decided on in this turn."""
    own: list[int] = field(default_factory=list[int])
    """Those among them that came before any tool's result, the end of the reply included."""
    spoken: list[int] = field(default_factory=list[int])
    """Index in the ids of each token that left in a burst."""
    calls: int = 0
    text: str = ""
    """What it says, as far as that has left in bursts."""
    avoided: int | None = None
    """The token that it may not begin with: with that one it was an echo."""
    call: Sequence[int] = ()
    """What it begins with where it has to be a call, and goes on with once a tool has returned."""
    returned: bool = False
    """A tool has returned something."""
    finished: bool = False
    limited: bool = False
    """It is finished because it has had as many tokens as it may."""
    cut: bool = False
    """The user did not hear it to its end."""


class SpeculativeConversation:
    """See `voiceloop.engines.Conversation`. Half of its attributes are the model's, and the others
    are the dialogue as it stands."""

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
        """`caches` are the speculator's, which `pool` may empty while they are not held. A reply
        ends before the first of the `stop` strings."""
        self.hook = hook or ReplyHook()
        """What else has a say in replies."""
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
        """Where each exchange's user text begins; the last is the current one's."""
        self._said: list[frozenset[int]] = []
        """The tokens that each exchange's reply consists of, but for the current one's."""
        self._asked = _Asked()
        self._reply: _Reply | None = None
        self._required: Sequence[str] = ()
        """Tools of which each reply has to call one; none where it may say something."""
        self._call: Sequence[int] = ()
        """What all such calls begin with."""

    @property
    def _capacity(self) -> int:
        """Ids that fit."""
        return self._speculator.cache.capacity

    @property
    def ids(self) -> tuple[int, ...]:
        """Everything the models are to see, from the system prompt on."""
        return tuple(self._ids)

    @property
    def counters(self) -> LlmCounters:
        """What the conversation has cost so far."""
        return self._speculator.stats.counters

    @property
    def exchanges(self) -> int:
        """See `Conversation.exchanges`."""
        return len(self._starts) - 1

    @property
    def limited(self) -> bool:
        """See `Conversation.limited`."""
        return self._reply is not None and self._reply.limited

    @property
    def tokens_read(self) -> int:
        """See `Conversation.tokens_read`."""
        return self._speculator.stats.total.prefilled

    @property
    def seed(self) -> int | None:
        """See `Conversation.seed`."""
        return self._speculator.seed

    def end_of_turn_probability(self) -> float | None:
        """How likely the user's turn ends after the text that `prefill` was last given: the
        probability of what closes it and of the marks that end a sentence, together.

        None unless that call computed the text's last token.
        """
        return self._speculator.ending(self._asked.bare)

    def prefill(self, text: str, turn: int) -> Steps[None]:
        """See `Conversation.prefill`.

        All of the text is computed, its last tokens too: if later text tokenises them in another
        way, they are rolled back for nothing, and P(end of turn) needs them.
        """
        with self._held():
            self._begin(turn)
            self._ask(text, suffix=[])
            self._asked.bare = len(self._ids)
            yield from self._speculator.prefill(self._ids)

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """See `Conversation.reply`."""
        with self._held():
            self._begin(turn)
            self._asked.old = ()
            yield from self._answer_to(text, turn)

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """See `Conversation.revise`: the old reply is the draft of the new one."""
        with self._held():
            self._begin(turn)
            yield from self._answer_to(text, turn)

    def recite(self, text: str, turn: int, reply: str) -> Steps[TokenBurst]:
        """See `Conversation.recite`; of a reply that does not fit, the beginning is said."""
        self._begin(turn)
        recited = self._asks(text, turn)
        ids = self._template.encode(self._template.harmless(reply))
        ids = ids[: self._capacity - len(self._ids)]
        recited.spoken = list(range(recited.start, recited.start + len(ids)))
        recited.finished = True
        self._ids += ids
        self._reply = recited
        detokenizer = Detokenizer(self._tokenizer)
        pieces = [detokenizer.push(token) for token in ids]
        ends = tuple(accumulate(map(len, pieces)))
        yield TokenBurst(turn, tuple(ids), "".join(pieces), ends=ends)

    def ahead(self, text: str, turn: int) -> Steps[int | Begun] | None:
        """See `Conversation.ahead`."""
        if self._call:
            return None
        prompt = partial(self._prompt_ahead, text, turn)
        steps = self.hook.ahead(turn, prompt, self._output)
        return None if steps is None else self._look_ahead(steps, turn)

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int
    ) -> Steps[TokenBurst | ToolCall]:
        """See `Conversation.tool_results`. Nothing comes where the turn's reply is gone."""
        reply = self._reply
        if reply is None or reply.turn != turn or len(self._ids) <= reply.start:
            return
        ids = self._template.tool_results([(call.name, text) for call, text in returned])
        if len(self._ids) + len(ids) + len(self._call) >= self._capacity:
            names = " and ".join(call.name for call, _ in returned)
            raise _too_long(f"the result of {names}", self._capacity)
        self._ids += ids
        reply.returned, reply.call = True, self._call
        with self._held():
            yield from self._answer(reply)

    def heard(self, tokens: int) -> str:
        """See `Conversation.heard`. Counts the tokens of bursts, in the order they came."""
        reply = self._reply
        if reply is None:
            return ""
        if tokens <= 0 or not reply.spoken:
            self._truncate(reply.asked)
        elif tokens < len(reply.spoken) or not reply.finished:
            self._truncate(reply.spoken[:tokens][-1] + 1)
            reply.cut = True
        del reply.spoken[max(tokens, 0) :]
        kept = [self._ids[place] for place in reply.spoken]
        return self._tokenizer.decode(kept, clean_up_tokenization_spaces=False)

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        """See `Conversation.rewrite`."""
        template = self._template
        self._required, self._call = tuple(required), template.call_of(required)
        opening = template.opening(system, tools)
        words = [[part for part in one.replied if isinstance(part, str)] for one in past]
        replies = [template.encode(template.harmless(spaced(own))) for own in words]
        turns = [
            template.content(one.said)
            + template.user_to_reply
            + self._replied(one)
            + template.reply_to_user
            for one in past
        ]
        while turns and len(opening) + sum(map(len, turns)) > self._capacity // 2:
            del turns[0], replies[0]
            self._speculator.stats.total.dropped_turns += 1
        ids, starts = opening, [len(opening)]
        for turn in turns:
            ids = ids + turn
            starts.append(len(ids))
        same = common(self._ids, ids)
        self._truncate(same)
        self._ids += ids[same:]
        self._starts, self._said = starts, [frozenset(reply) for reply in replies]
        self._asked, self._reply = _Asked(), None

    def _replied(self, past: Past) -> list[int]:
        """The ids of a reply, with its calls as the model writes them and what they returned."""
        template, ids = self._template, list[int]()
        for spoken, parts in groupby(past.replied, lambda part: isinstance(part, str)):
            if spoken:
                ids += template.encode(template.harmless(spaced(cast("Iterable[str]", parts))))
                continue
            called = list(cast("Iterable[tuple[ToolCall, str]]", parts))
            if written := template.calls([call for call, _ in called]):
                returned = [(call.name, result) for call, result in called]
                ids += written + template.tool_results(returned)
        return ids

    def calls(self, tools: Sequence[Tool]) -> bool:
        """See `Conversation.calls`."""
        return bool(self._template.call_of([tool.name for tool in tools]))

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        """See `Conversation.opening`: a quarter of the context is for what is said."""
        return len(self._template.opening(system, tools)), self._capacity * 3 // 4

    def close(self) -> None:
        """See `Conversation.close`."""
        self._speculator.release()
        self._pool.forget(self._caches)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the caches' buffers while the models compute."""
        memory = memory_for("what a conversation computes", MEMORY_HINT)
        with self._pool.hold(self._caches) as evicted, memory:
            if evicted:
                self._speculator.rollback(0)
                self._speculator.stats.total.evictions += 1
            yield

    def _look_ahead(
        self, steps: Generator[int, None, Sequence[Sequence[int]]], turn: int
    ) -> Steps[int | Begun]:
        with memory_for("what a conversation begins ahead", MEMORY_HINT):
            begun = yield from steps
        yield from (self._begun(ids, turn) for ids in begun)

    def _begun(self, ids: Sequence[int], turn: int) -> Begun:
        """What is spoken of a reply that begins with `ids`."""
        output, end = self._output(), self._end(ids)
        items = output.push(ids[:end])
        whole = end < len(ids) or output.stopped is not None
        if whole:
            items += output.finish()
        said = (item for item in items if isinstance(item, Speech))
        bursts = tuple(TokenBurst(turn, one.ids, one.text, ends=one.ends) for one in said)
        return Begun(bursts, whole)

    def _prompt_ahead(self, text: str, turn: int) -> tuple[Prompt, int]:
        """Return the prompt up to `text`, which is not all that the user says in `turn`, and the
        number of its ids that are those of the conversation."""
        before, carried = self._before(turn)
        words = self._template.content(f"{carried} {text}".strip())
        earlier = self._earlier(words, None if turn == self._asked.turn else self._reply)
        ids = [*before, *words]
        return Prompt(ids, turn, earlier=earlier), common(ids, self._ids)

    def _before(self, turn: int) -> tuple[list[int], str]:
        """The ids before what the user says in `turn` if the last reply is heard to its end, and
        what earlier turns without one contribute to it."""
        reply, asked = self._reply, self._asked
        if turn != asked.turn and reply is not None and len(self._ids) > reply.start:
            return self._ids + self._template.reply_to_user, ""
        goes_on = turn == asked.turn or reply is None
        return self._ids[: self._starts[-1]], asked.before if goes_on else asked.said

    def _begin(self, turn: int) -> None:
        """Go on with the user's `turn`, or close the exchange before it."""
        self.hook.begin(turn)
        reply, self._reply = self._reply, None
        asked = self._asked
        if turn == asked.turn:
            if reply is not None and reply.own:  # one that said nothing replaces no other
                asked.old = reply.own
            return
        before = asked.before
        if reply is not None and len(self._ids) > reply.start:
            self._said.append(self._spoken(reply))
            if reply.cut:
                self._ids += self._template.encode(BROKEN_OFF)
            self._ids += self._template.reply_to_user
            self._starts.append(len(self._ids))
            before = ""
        elif reply is not None:
            before = asked.said
        self._asked = _Asked(turn, before)

    def _ask(self, text: str, suffix: list[int]) -> None:
        """Make the ids end with the user's turn and `suffix`, keeping all rows that still fit."""
        said = f"{self._asked.before} {text}".strip()
        tail = self._template.content(said) + suffix
        self._make_room(len(tail) + len(self._template.user_to_reply) + len(self._call))
        self._asked.said = said
        start = self._starts[-1]
        same = common(self._ids[start:], tail)
        self._truncate(start + same)
        self._ids += tail[same:]

    def _make_room(self, tokens: int) -> None:
        """Where `tokens` more and a reply do not fit, forget the older half of the exchanges.

        What is left has to be read again, so more is forgotten than is needed: with room for one
        turn alone, every turn to come would read the whole context.
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
            del self._said[0]
            self._speculator.stats.total.dropped_turns += 1

    def _truncate(self, length: int) -> None:
        self._speculator.rollback(length)
        del self._ids[length:]

    def _answer_to(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        self._reply = reply = self._asks(text, turn)
        if reply.call:
            yield from self._call_by(reply)
            return
        echo, held = Echo(self._asked.said), list[TokenBurst]()
        for item in self._answer(reply):
            if isinstance(item, TokenBurst) and echo.push(item.text):
                held.append(item)
                yield None
            else:
                yield from held
                held.clear()
                yield item
        if not (held and echo.whole and reply.finished):
            yield from held
            return
        # Drawn again, once, with another beginning.
        yield from self._again(_Reply(turn, reply.asked, reply.start, avoided=reply.own[0]))

    def _again(self, reply: _Reply) -> Steps[TokenBurst | ToolCall]:
        """Answer once more, with `reply` in place of the one that begins where it does."""
        self._truncate(reply.start)
        self._asked.old, self._reply = (), reply
        yield from self._answer(reply)

    def _call_by(self, reply: _Reply) -> Steps[TokenBurst | ToolCall]:
        """Let the target call one of the required tools. Where it calls another, it calls the one
        of the nearest name instead."""
        answer = self._answer(reply)
        for item in answer:
            if isinstance(item, ToolCall) and item.name not in self._required:
                answer.close()
                break
            yield item
        else:
            return
        name = nearest(item.name, self._required) or self._required[0]
        call = self._template.call_of([name])
        yield from self._again(_Reply(reply.turn, reply.asked, reply.start, call=call))

    def _asks(self, text: str, turn: int) -> _Reply:
        """Where the reply to the user's whole turn begins: at the end of the ids."""
        self._ask(text, suffix=self._template.user_to_reply)
        start, said = len(self._ids), self._starts[-1]
        words = self._template.content(bare(self._asked.said))
        known = self._ids[said : said + len(words)] == words
        self._asked.bare = said + len(words) if known else 0
        return _Reply(turn, start - len(self._template.user_to_reply), start, call=self._call)

    def _answer(self, reply: _Reply) -> Steps[TokenBurst | ToolCall]:
        """Let the target go on from the ids until the reply is over."""
        reply.finished = False
        base, last = len(self._ids), reply.chosen + self._max_new_tokens
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
            items, end = _ended(items, reply.text, round(self._max_new_tokens * LAST_SENTENCE))
            if (stopped := output.stopped if end is None else end) is not None:
                self._truncate(base + stopped)
                reply.finished = True
            reply.limited = end is not None or not (ended or output.stopped is not None or left > 0)
            if reply.finished and end is None:
                items += output.finish()
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

    def _first(self, reply: _Reply, most: int) -> Generator[None, None, Step]:
        """Take the first step of a reply, of which `most` tokens are left."""
        words = self._ids[self._starts[-1] : reply.asked]
        earlier = self._earlier(words, reply if reply.returned else None)
        prompt = Prompt(
            *(self._ids, reply.turn, reply.chosen, self._asked.bare, earlier, reply.avoided)
        )
        first = self.hook.first(prompt, most, partial(self._output, reply.call))
        if first is not None:
            return first
        # The last id leaves room for the target's own token after the old ones.
        old = () if reply.returned else self._asked.old[: most - 1]
        return self._speculator.revise(prompt, old)

    def _spoken(self, reply: _Reply) -> frozenset[int]:
        """The tokens that have left in bursts, and were heard as far as is known."""
        return frozenset(self._ids[place] for place in reply.spoken)

    def _earlier(self, words: Sequence[int], reply: _Reply | None) -> frozenset[int]:
        """The tokens of all replies so far, that of `reply` included, and of the user's `words`."""
        return frozenset(words).union(*self._said, () if reply is None else self._spoken(reply))

    def _output(self, begun: Sequence[int] = ()) -> Output:
        """What a reply's tokens go through, behind those that it has `begun` with."""
        thinking, call = self._template.thinks_first, self._template.call
        output = Output(self._tokenizer, thinking=thinking, stop=self._stop, call=call)
        output.push(begun)
        return output

    def _end(self, ids: Sequence[int]) -> int:
        """How many of `ids` come before the end of the reply."""
        return next((i for i, token in enumerate(ids) if token in self._eos), len(ids))

    def _keep(self, ids: Sequence[int], reply: _Reply) -> Sequence[int]:
        """Add what comes before the end of the reply to the conversation."""
        end = self._end(ids)
        reply.chosen += min(end + 1, len(ids))
        if not reply.returned:
            reply.own += ids[: end + 1]
        self._ids += ids[:end]
        self._speculator.rollback(len(self._ids))
        return ids[:end]


def _ended(
    items: list[Speech | Call], said: str, last: int
) -> tuple[list[Speech | Call], int | None]:
    """`items`, which go on what was `said`, up to the end of the sentence that the token at place
    `last` lies in, and the place of the first that is left out; all of them and None before."""
    for number, item in enumerate(items):
        if not isinstance(item, Speech):
            continue
        # The mark may have come before, and what follows it now.
        before, ends = len(said), [0, *item.ends]
        said += item.text
        start = next((at for at, place in enumerate(item.places) if place >= last), None)
        end = None if start is None else sentence_end(said, before + ends[start])
        if end is None:
            continue
        kept = sum(before + stop <= end for stop in item.ends)
        if kept < len(item.places):
            cut = Speech(
                item.ids[:kept], item.places[:kept], item.text[: ends[kept]], item.ends[:kept]
            )
            return [*items[:number], *([cut] if kept else [])], item.places[kept]
    return items, None


def _deliver(
    items: Sequence[Speech | Call], step: Step, reply: _Reply, base: int
) -> Steps[TokenBurst | ToolCall]:
    """Hand out what one step gave; what it has cost is told with the first words."""
    if not items:
        yield None
    drafted, accepted, facts = step.drafted, step.accepted, step.facts
    for item in items:
        if isinstance(item, Speech):
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
