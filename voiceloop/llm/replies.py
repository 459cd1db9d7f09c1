"""Decode the replies of a conversation with the built-in model into text and calls.

Rules of replies are kept here: a reply ends with a sentence, does not only repeat the user's words,
and calls one of the required tools. The module `tokenhistory` keeps the token ids, and `speculate`
decides tokens.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from voiceloop.engines import Steps
from voiceloop.llm.decode.hook import ReplyHook
from voiceloop.llm.rules.stats import Step
from voiceloop.llm.text.output import CallOutput, Echo, Output, SpeechOutput, to_sentence_end
from voiceloop.llm.tokenhistory import ReplyState, TokenHistory
from voiceloop.settings.schema import nearest
from voiceloop.types import TokenBurst, ToolCall

LAST_SENTENCE = 0.6
"""Share of `max_new_tokens` after which a reply ends with its current sentence."""


class ReplyDecoder:
    """A decoder of the replies in `history`."""

    def __init__(
        self,
        history: TokenHistory,
        tokenizer: Any,
        *,
        eos: frozenset[int],
        stop: Sequence[str] = (),
        hook: ReplyHook | None = None,
    ) -> None:
        """`eos` are the tokens that end a reply. A reply also ends before the first of the `stop`
        strings. `hook` may change how replies are decided."""
        self.history = history
        self.tokenizer = tokenizer
        self.hook = hook or ReplyHook()
        self.required: Sequence[str] = ()
        """The tools of which each reply has to call one; empty if replies may be text."""
        self._speculator, self._template = history.speculator, history.template
        self._most = history.max_new_tokens
        self._eos = eos
        self._stop = tuple(stop)

    def answer_to(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer `text`. A reply that only repeats the user's words is not yielded; another reply
        with a different first token is decoded instead."""
        history = self.history
        reply = history.open_reply(text, turn)
        yield from self.read_opening()
        if reply.call:
            yield from self._call_by(reply)
            return
        echo, held = Echo(history.request.said), list[TokenBurst]()
        for item in self.answer(reply):
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
        other = ReplyState(turn, reply.request_end, reply.start, avoided=reply.own[0])
        history.replace_reply(other)
        yield from self.answer(other)

    def _call_by(self, reply: ReplyState) -> Steps[TokenBurst | ToolCall]:
        """Let the target call a tool. If it calls a tool that is not required first, the required
        tool with the most similar name is called instead, and nothing of the first reply stays."""
        answer, held = self.answer(reply), list[TokenBurst]()
        for item in answer:
            if isinstance(item, ToolCall):
                if item.name not in self.required:
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
        name = nearest(item.name, self.required) or self.required[0]
        call = self._template.call_of([name])
        other = ReplyState(reply.turn, reply.request_end, reply.start, call=call)
        self.history.replace_reply(other)
        yield from self.answer(other)

    def answer(self, reply: ReplyState) -> Steps[TokenBurst | ToolCall]:
        """Decode `reply` until it is over, and yield its bursts and calls."""
        reply.finished = False
        history, last = self.history, reply.chosen + self._most
        base = len(history.ids)
        late = round(self._most * LAST_SENTENCE)
        output = self.output(reply.call)
        history.add(reply.call)
        most = min(self._most, history.capacity - len(history.ids))
        step = yield from self._first(reply, most)
        ready = False
        while True:
            kept = self._keep(step.tokens, reply)
            left = min(last - reply.chosen, history.capacity - len(history.ids))
            ended = len(kept) < len(step.tokens)
            reply.finished = ended or left <= 0
            items = output.push(kept)
            items, end = to_sentence_end(items, reply.text, late)
            if (stopped := output.stopped if end is None else end) is not None:
                history.truncate(base + stopped)
                reply.finished = True
            reply.limited = end is not None or not (ended or output.stopped is not None or left > 0)
            if reply.finished and end is None:
                items += output.finish()
            yield from _deliver(items, step, reply, base)
            if reply.finished:
                return
            further: Step | None = None
            if not (reply.returned or reply.call):
                further = self.hook.further(history.ids, reply.own, left)
            if further is not None:
                step = further
                continue
            if not ready:
                yield from self._speculator.prefill_draft(history.ids[:-1])
                ready = True
            step = yield from self._speculator.round(history.ids, left)

    def read_opening(self) -> Steps[None]:
        """Compute or copy the rows of the opening except the last one. What a decoder has to
        prepare, e.g. a context of llama.cpp, it prepares for that one, and not for the words."""
        return self._speculator.open(self.history.opening[:-1])

    def _first(self, reply: ReplyState, most: int) -> Generator[None, None, Step]:
        """Decide the first tokens of `reply` or of its continuation, which may have `most`
        tokens."""
        prompt = self.history.prompt(reply)
        first = self.hook.first(prompt, most, partial(self.output, reply.call))
        if first is not None:
            return first
        # At most `most` - 1 old tokens leave room for the token that the target adds.
        old = () if reply.returned else self.history.request.old[: most - 1]
        return self._speculator.revise(prompt, old)

    def output(self, begun: Sequence[int] = ()) -> Output:
        """Make the converter from tokens to text for a reply that begins with the tokens
        `begun`."""
        thinking, call = self._template.thinks_first, self._template.call
        output = Output(self.tokenizer, thinking=thinking, stop=self._stop, call=call)
        output.push(begun)
        return output

    def _keep(self, ids: Sequence[int], reply: ReplyState) -> Sequence[int]:
        """Add `ids` to the conversation and return them. The token that ends the reply is left out,
        and all tokens after it."""
        end = next((i for i, token in enumerate(ids) if token in self._eos), len(ids))
        reply.chosen += min(end + 1, len(ids))
        if not reply.returned:
            reply.own += ids[: end + 1]
        kept = self.history.add(ids[:end])
        self._speculator.rollback(len(self.history.ids))
        return kept


def _deliver(
    items: Sequence[SpeechOutput | CallOutput], step: Step, reply: ReplyState, base: int
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
