"""One conversation: whose turn it is, which token ids it consists of, and what was heard of them.

The ids are the truth: replies keep the ids the model chose, and only what the user says is
tokenised. The sequence is `opening, text, user_to_reply, reply, reply_to_user, text, …`; an
exchange is what lies between the beginnings of two user texts. This module knows neither how
tokens are decided nor what becomes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from voiceloop.engines import Steps
from voiceloop.errors import EngineError
from voiceloop.llm.output import Call, Output, Speech
from voiceloop.llm.speculator import LlmCounters, Round, Speculator
from voiceloop.llm.template import ChatTemplate
from voiceloop.types import TokenBurst, ToolCall


@dataclass(slots=True)
class _Reply:
    """The reply to the last user turn, as far as it has come."""

    turn: int
    asked: int
    """Index in the ids after the user's text."""
    start: int
    """Index of the reply's first token."""
    chosen: int = 0
    """Tokens that the target has decided on in this turn."""
    spoken: list[int] = field(default_factory=list[int])
    """Index in the ids of each token that left in a burst."""
    calls: int = 0
    finished: bool = False


class SpeculativeConversation:
    """See `voiceloop.engines.Conversation`."""

    def __init__(
        self,
        speculator: Speculator,
        template: ChatTemplate,
        tokenizer: Any,
        *,
        eos: frozenset[int],
        system: str,
        max_new_tokens: int,
    ) -> None:
        self._speculator = speculator
        self._template = template
        self._tokenizer = tokenizer
        self._eos = eos
        self._max_new_tokens = max_new_tokens
        self._capacity = speculator.cache.capacity
        self._ids = template.opening(system)
        self._starts = [len(self._ids)]
        """Where each exchange's user text begins; the last is the current one's."""
        self._said = ""
        """The user's current turn."""
        self._before = ""
        """The part of it that earlier turns without a reply contributed."""
        self._reply: _Reply | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """Everything the models are to see, from the system prompt on."""
        return tuple(self._ids)

    @property
    def counters(self) -> LlmCounters:
        """What the conversation has cost so far."""
        return LlmCounters(**self._speculator.counts)

    def end_of_turn_probability(self) -> float | None:
        """How likely the user's turn ends after the text that `prefill` was last given.

        None unless that call computed the text's last token.
        """
        return self._speculator.probability(self._template.user_to_reply[0], len(self._ids))

    def prefill(self, text: str) -> Steps[None]:
        """See `Conversation.prefill`.

        All of the text is computed, its last tokens too: if later text tokenises them in another
        way, they are rolled back for nothing, and P(end of turn) needs them.
        """
        self._next_turn()
        self._ask(text, suffix=[])
        yield from self._speculator.prefill(self._ids)

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """See `Conversation.reply`.

        Asked again for the same turn, it is answered anew: `text` takes the place of what was
        said, and the former reply is dropped. Where the turn before was left without a reply, its
        text comes first.
        """
        if self._reply is not None and self._reply.turn == turn:
            self._reply = None
        else:
            self._next_turn()
        self._ask(text, suffix=self._template.user_to_reply)
        start = len(self._ids)
        self._reply = _Reply(turn, start - len(self._template.user_to_reply), start)
        yield from self._answer(self._reply)

    def tool_result(self, call: ToolCall, result: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """See `Conversation.tool_result`. Nothing comes where the turn's reply is gone."""
        reply = self._reply
        if reply is None or reply.turn != turn or len(self._ids) <= reply.start:
            return
        returned = self._template.tool_result(result)
        if len(self._ids) + len(returned) >= self._capacity:
            raise _too_long(f"the result of {call.name}", self._capacity)
        self._ids += returned
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
        del reply.spoken[max(tokens, 0) :]
        kept = [self._ids[place] for place in reply.spoken]
        return self._tokenizer.decode(kept, clean_up_tokenization_spaces=False)

    def close(self) -> None:
        """See `Conversation.close`."""
        self._speculator.release()

    def _next_turn(self) -> None:
        """Close the exchange that has a reply; one without a reply goes on with the next text."""
        reply, self._reply = self._reply, None
        if reply is None:
            return
        if len(self._ids) > reply.start:
            self._ids += self._template.reply_to_user
            self._starts.append(len(self._ids))
            self._before = ""
        else:
            self._before = self._said

    def _ask(self, text: str, suffix: list[int]) -> None:
        """Make the ids end with the user's turn and `suffix`, keeping all rows that still fit."""
        said = f"{self._before} {text}".strip()
        tail = self._template.content(said) + suffix
        self._make_room(len(tail) + len(self._template.user_to_reply))
        self._said = said
        start = self._starts[-1]
        same = _common(self._ids[start:], tail)
        self._truncate(start + same)
        self._ids += tail[same:]

    def _make_room(self, tokens: int) -> None:
        """Forget the oldest exchanges until `tokens` more and a reply fit."""
        wanted = tokens + min(self._max_new_tokens, self._capacity // 4)
        if self._starts[0] + tokens >= self._capacity:
            raise _too_long("what the user said", self._capacity)
        while self._starts[-1] + wanted > self._capacity and len(self._starts) > 1:
            first, second = self._starts[:2]
            self._speculator.rollback(first)
            del self._ids[first:second]
            self._starts = [first, *(start - second + first for start in self._starts[2:])]
            self._speculator.counts["dropped_turns"] += 1

    def _truncate(self, length: int) -> None:
        self._speculator.rollback(length)
        del self._ids[length:]

    def _answer(self, reply: _Reply) -> Steps[TokenBurst | ToolCall]:
        """Let the target go on from the ids until the reply is over."""
        reply.finished = False
        base, last = len(self._ids), reply.chosen + self._max_new_tokens
        output = Output(self._tokenizer, thinking=self._template.thinks_first)
        token = yield from self._speculator.first(self._ids, reply.turn, reply.chosen)
        step = Round((token,))
        while True:
            kept = self._keep(step.ids, reply)
            left = min(last - reply.chosen, self._capacity - len(self._ids))
            reply.finished = len(kept) < len(step.ids) or left <= 0
            items = output.push(kept) + (output.finish() if reply.finished else [])
            yield from _deliver(items, step, reply, base)
            if reply.finished:
                return
            if len(self._ids) == base + 1:
                yield from self._speculator.prefill_draft(self._ids[:-1])
            step = self._speculator.round(self._ids, reply.turn, reply.chosen, left)

    def _keep(self, ids: Sequence[int], reply: _Reply) -> Sequence[int]:
        """Add what comes before the end of the reply to the conversation."""
        end = next((i for i, token in enumerate(ids) if token in self._eos), len(ids))
        reply.chosen += min(end + 1, len(ids))
        self._ids += ids[:end]
        self._speculator.rollback(len(self._ids))
        return ids[:end]


def _deliver(
    items: Sequence[Speech | Call], step: Round, reply: _Reply, base: int
) -> Steps[TokenBurst | ToolCall]:
    """Hand out what one step gave; what it tested is told with the first words."""
    if not items:
        yield None
    drafted, accepted = step.drafted, step.accepted
    for item in items:
        if isinstance(item, Speech):
            reply.spoken += [base + place for place in item.places]
            among = min(accepted, len(item.ids))
            yield TokenBurst(reply.turn, item.ids, item.text, drafted, among, item.ends)
            drafted = accepted = 0
        else:
            reply.calls += 1
            call_id = f"call_{reply.turn}_{reply.calls}"
            yield ToolCall(reply.turn, call_id, item.name, item.arguments, item.ids)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common beginning."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _too_long(what: str, capacity: int) -> EngineError:
    return EngineError(
        f"{what} does not fit into a context of {capacity} tokens",
        "say less, or raise llm.context",
    )
