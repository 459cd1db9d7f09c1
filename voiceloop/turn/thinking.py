"""Thinking: runs the language model for one reply, with the tools that it calls on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

import anyio

from voiceloop.dialogue import actions, inputs
from voiceloop.engines import Steps
from voiceloop.errors import VoiceloopError
from voiceloop.languages import bare, language
from voiceloop.skills.claims import ClaimGuard
from voiceloop.skills.known import Answer, Effect
from voiceloop.tools.results import is_error
from voiceloop.trace.record import TOOL, Lane, Mark, Recorder
from voiceloop.tts.normalize import normalize
from voiceloop.turn.resources import Resources
from voiceloop.turn.speech import Gate
from voiceloop.types import TokenBurst, ToolCall

WORDY = 1000
"""Number of characters above which a reply is taken to have words. Normalising all of a longer one
would hold up the event loop."""
TOOL_ROUNDS = 4
"""Maximum number of times that the model generates output in one reply. It does so once at the
beginning, and again after each set of tool calls. A model that wants more repeats itself."""


Thought = TokenBurst | ToolCall | inputs.ToolsCalled | None
"""What the model has thought; None if it was read, but waits for more or cannot be run."""
Take = Callable[[Thought], Awaitable[None]]
"""A function that takes the thoughts of a reply. The model goes on when it has returned."""


class Thinking:
    """The language model's work for one reply. Call `run` once. Most of its attributes hold
    results."""

    def __init__(
        self,
        request: actions.StartReply,
        recorder: Recorder,
        resources: Resources,
        gate: Gate,
        answer: Answer | None = None,
    ) -> None:
        """Prepare the reply that is requested. If `answer` is given, it is the reply, and the model
        generates none."""
        self.language = language(resources.engines.tts.language(request.options.voice))
        """Language that the reply's voice speaks."""
        self.said = ""
        """Text of the reply so far, as written."""
        self.instead: str | None = None
        """Text that is said because the reply says nothing; empty if the reply is only written.
        None while the reply is not over, and for a reply that says something."""
        self.apology = ""
        """Text that is said at the end because the language model failed; empty if it did not."""
        self.failure: VoiceloopError | None = None
        """Error with which the language model failed; None if it did not."""
        self.question = ""
        """Question whether a tool may run, with which the reply ends; empty if there is none. It
        has to be said alone, so that nothing hides it."""
        self.question_tokens = 0
        """Number of tokens of `question`, the last ones of the reply."""
        self.too_long = False
        """Whether the reply was ended because it reached the requested maximum of tokens."""
        self._limited = False
        self.called: Sequence[tuple[ToolCall, str | None]] = ()
        """Newest tool calls, each with its result. The result is None if it is not known yet, or if
        a client runs the tool."""
        self.results: list[tuple[ToolCall, str]] = []
        """All tool calls that have returned, each with its result, in the order in which they
        returned."""
        self._called_at = 0.0
        self._returned = anyio.Event()
        """Event that is set, and replaced by a new one, when a tool returns its result."""
        self.counts: Counter[str] = Counter()
        self.until: float | None = None
        """When the model's work ended, in seconds of the loop's clock; None until then."""
        self.answer = answer
        self.effect = _as_call(answer.effect, request.turn) if answer and answer.effect else None
        """What `answer` does, as a call; None if it does nothing."""
        self._request = request
        self._recorder = recorder
        self._resources = resources
        self._gate = gate
        self._ends: list[int] = []
        """For each token of the reply, the number of characters of `said` up to its end."""
        acts = resources.engines.llm.acts
        watched = request.options.skills and answer is None and not acts
        codes = (self.language.code, request.language) if watched else ()
        self._guard = ClaimGuard(request.text, *codes)
        """Guard against claims of deeds, where voiceloop's own assistant replies."""

    @property
    def tokens(self) -> int:
        """Number of tokens generated so far."""
        return self.counts["tokens"]

    def text_of(self, tokens: int) -> str:
        """Return the text of the first `tokens` tokens of the reply."""
        known = self._ends[:tokens]
        return self.said[: known[-1]] if known else ""

    def returned(self, call: ToolCall, result: str) -> None:
        """Note the result of a tool call."""
        self.called = [(one, result if one is call else known) for one, known in self.called]
        self.results.append((call, result))
        if not is_error(result):
            self._guard.allow()
        self._returned.set()
        self._returned = anyio.Event()
        if not call.problem:
            now, arguments = anyio.current_time(), json.dumps(dict(call.arguments))
            about = {"call": call.call_id, "arguments": arguments}
            self._recorder.span(Lane.REPLY, f"{TOOL} {call.name}", self._called_at, now, **about)

    async def run(self, take: Take) -> None:
        """Have `take` get the model's text and tool calls, and `ToolsCalled` after tool calls. Then
        the model goes on once `returned` was called with the result of each tool that voiceloop
        runs.

        If the model fails, the last burst is an apology, which is no part of the conversation. For
        a guess, the apology waits until the guess is committed.
        """
        try:
            try:
                await self._think(take)
            finally:
                self.until = anyio.current_time()
            if not (self.question or self._says_something()):
                self.instead = self._without_words() if self._request.options.spoken else ""
        except VoiceloopError as error:
            await self._gate.opened()
            self.failure = error
            if self._request.options.spoken and (apology := self.language.apology):
                self.apology = apology
                text = f"\n{apology}" if self.said else apology
                await take(TokenBurst(self._recorder.turn, (), text))

    @property
    def limited(self) -> bool:
        """Whether the reply was ended by the requested number of tokens or by the model's own
        limit."""
        return self.too_long or self._limited

    async def _think(self, take: Take) -> None:
        conversation, steps = self._resources.conversation, self._first_steps()
        for _ in range(TOOL_ROUNDS):
            calls = await self._generate(steps, take)
            if self._guard.claimed and not calls:
                await self._tell(*self._replacement(), take)
                break
            if not calls or self.too_long:
                break
            await self._gate.opened()
            self.called = [(call, None) for call in calls]
            self._called_at = anyio.current_time()
            await take(inputs.ToolsCalled(self._request.turn, calls))
            while any(result is None and not call.client for call, result in self.called):
                await self._returned.wait()
            await self._gate.flowing()
            returned = [(call, result) for call, result in self.called if result is not None]
            if len(returned) < len(calls):
                break
            say = self.question and f"{' ' * bool(self.said[-1:].strip())}{self.question}"
            steps = conversation.tool_results(returned, self._recorder.turn, say)
            if say:
                await self._tell(steps, say, take)
                break
        self._limited = conversation.standing.limited
        self._recorder.mark(Mark.REPLY_END, anyio.current_time())

    def _replacement(self) -> tuple[Steps[TokenBurst], str]:
        """Return the words in place of a claim, after the steps that put them into the history.
        There they follow what was said before it, after a dash in the middle of a clause."""
        self.counts["replaced"] += 1
        instead = self._guard.instead
        self._guard.release()
        said = self.said.rstrip()
        if said[-1:].isalnum():
            instead = f"– {instead}"  # noqa: RUF001
        added = f" {instead}" if said == self.said != "" else instead
        whole = f"{self.said}{added}".lstrip()
        conversation, turn = self._resources.conversation, self._recorder.turn
        return conversation.recite(self._request.text, turn, whole), added

    async def _tell(self, steps: Steps[TokenBurst | ToolCall], text: str, take: Take) -> None:
        """Have `take` get `text`, which rules found and the steps put into the history."""
        runner = self._resources.engines.llm_runner
        async with aclosing(runner.stream(steps, priority=self._gate.priority)) as bursts:
            async for burst in bursts:
                assert isinstance(burst, TokenBurst), "the model adds nothing"
                said = self._added(_end_of(burst, text))
                if self.question:
                    self.question_tokens += len(said.ids)
                    self.counts["tokens"] += len(said.ids)
                await take(said)

    def _first_steps(self) -> Steps[TokenBurst | ToolCall]:
        conversation, turn = self._resources.conversation, self._recorder.turn
        if self.answer is not None:
            return self._recited(self.answer)
        if self._request.returned:
            return conversation.tool_results(self._request.returned, turn)
        carried = self._request.revises and self._resources.overlap.carry_over
        begin = conversation.revise if carried else conversation.reply
        return begin(self._request.text, turn)

    def _recited(self, answer: Answer) -> Steps[TokenBurst | ToolCall]:
        """Yield the steps of a known answer. While the user may go on, the model first reads their
        words, so that the end of the turn can be judged."""
        conversation, turn = self._resources.conversation, self._recorder.turn
        if not self._gate.urgent:
            yield from conversation.prefill(bare(self._request.text), turn)
        if answer.text:
            yield from conversation.recite(self._request.text, turn, answer.text, self.effect)

    async def _generate(
        self, steps: Steps[TokenBurst | ToolCall], take: Take
    ) -> Sequence[ToolCall]:
        """Have `take` get the model's output as fast as the gate allows, up to the requested number
        of tokens. Return the model's tool calls."""
        most, begun = self._request.options.most_tokens, anyio.current_time()
        has_read, calls = False, list[ToolCall]()
        runner = self._resources.engines.llm_runner
        async with aclosing(runner.stream(steps, priority=self._gate.priority)) as items:
            async for item in items:
                if isinstance(item, TokenBurst) and has_read:
                    self._resources.pace.wrote(len(item.ids), anyio.current_time() - begun)
                has_read = True  # the time of the first item was spent with reading
                self._note(item, begun)
                if isinstance(item, ToolCall):
                    await self._release(take)
                    if not self._has_done(item):
                        calls.append(self._owned(item))
                        await take(None if item.problem else calls[-1])
                        if not self._request.options.parallel_calls:
                            return calls
                else:
                    for burst in self._guard.push(item) or [None]:
                        await take(burst and self._added(burst))
                if self._guard.claimed and not self._resources.toolbox:
                    return calls
                if most is not None and self.tokens >= most:
                    self.too_long = True
                    break
                await self._gate.resolved()
                await self._gate.flowing()
                self._gate.has_audio(self._resources.player.ahead_s)
                begun = anyio.current_time()
        self._guard.finish()
        if not self._guard.claimed:
            await self._release(take)
        return calls

    async def _release(self, take: Take) -> None:
        """Have `take` get what the guard held back."""
        for burst in self._guard.release():
            await take(self._added(burst))

    def _added(self, burst: TokenBurst) -> TokenBurst:
        """Add the text of a burst to the reply, and return the burst. If the burst gives no ends of
        its tokens, each token counts as an equal part of the text."""
        before, count = len(self.said), len(burst.ids)
        ends = burst.ends or [len(burst.text) * n // count for n in range(1, count + 1)]
        self._ends += [before + end for end in ends]
        self.said += burst.text
        return burst

    def _has_done(self, call: ToolCall) -> bool:
        """Return whether an earlier call of this reply, with the same tool and arguments, has
        returned without an error. A small model may repeat a call instead of telling its result."""
        meant = call.name, call.arguments
        return any(
            (one.name, one.arguments) == meant and not is_error(result)
            for one, result in self.results
        )

    def _owned(self, call: ToolCall) -> ToolCall:
        options, toolbox = self._request.options, self._resources.toolbox
        if call.problem:
            return call
        if call.name in options.client_tools:
            return replace(call, client=True)
        own = options.own_tools and call.name in toolbox
        return replace(call, confirm=own and toolbox.confirms(call.name))

    def _says_something(self) -> bool:
        """Return whether the reply has at least one word, waits for a client's tool, or is meant to
        say nothing."""
        if self.answer is not None and not self.answer.text:
            return True
        if any(result is None for _, result in self.called):
            return True
        if not self._request.options.spoken:
            return bool(self.said.strip())
        return len(self.said) > WORDY or bool(normalize(self.said, self.language).words)

    def _without_words(self) -> str:
        """Return what is said in place of a reply without words."""
        done = any(not is_error(result) for _, result in self.results)
        return self.language.done if done else self.language.nothing

    def _note(self, item: TokenBurst | ToolCall, begun: float) -> None:
        now = anyio.current_time()
        self._recorder.mark(Mark.FIRST_BURST, now)
        if isinstance(item, ToolCall):
            self._recorder.span(Lane.DECODE, f"call {item.name}", begun, now)
            return
        facts = {"tokens": len(item.ids), "drafted": item.drafted, "accepted": item.accepted}
        facts |= {name: round(value) for name, value in item.facts.items() if value}
        self.counts.update(facts)
        self._recorder.span(Lane.DECODE, "round", begun, now, **facts, text=item.text)


def _as_call(effect: Effect, turn: int) -> ToolCall:
    result = json.dumps(effect.result, ensure_ascii=False)
    return ToolCall(turn, f"rule_{turn}", effect.name, {"asked": effect.asked}, result=result)


def _end_of(burst: TokenBurst, text: str) -> TokenBurst:
    """Return the end of a recited burst that has the text `text`, with its tokens."""
    if not burst.ends:
        return replace(burst, text=text)
    begin = len(burst.text) - len(text)
    ends = tuple(end - begin for end in burst.ends if end > begin)
    return replace(burst, ids=burst.ids[len(burst.ids) - len(ends) :], text=text, ends=ends)
