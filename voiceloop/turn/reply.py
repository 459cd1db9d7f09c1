"""Reply: one attempt to answer a turn. It thinks, speaks and plays at the same time.

    think (turn/thinking) | cut (tts/stream) | speak (turn/speech) | play (audio/player)

Each stage takes its input from the stage before it, through a bounded stream if both work at the
same time. No stage knows which one comes after it. Reports to the core leave after the cut, and the
core handles each before thinking goes on.

A reply may begin on the guess that the user has finished. Before its gate opens, nothing is shown
or played, tools wait, and thinking pauses after the first clause. Others decide whether the guess
was right.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import anyio
import anyio.lowlevel
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream

from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.inputs import Reports
from voiceloop.dialogue.state import Options
from voiceloop.engines import T
from voiceloop.skills.known import Answer
from voiceloop.trace.record import DROPPED_REPLY, REPLY, Lane, Mark, Recorder
from voiceloop.tts.normalize import normalize
from voiceloop.tts.pace import Tempo
from voiceloop.tts.stream import clauses
from voiceloop.turn.ahead import catch_up, look_ahead
from voiceloop.turn.gate import Gate
from voiceloop.turn.resources import Resources, Voiced
from voiceloop.turn.speech import Speech
from voiceloop.turn.thinking import Thinking
from voiceloop.types import LOADS, Clause, Event, Span, SpeechChunk, TokenBurst, ToolCall

HEAD_START_S = 0.2
"""Maximum seconds for which thinking pauses while the voice makes its first sound. After a longer
pause, a short first clause would be over before the next clause is ready."""
CLAUSES, CHUNKS = 8, 8
"""Items that the streams between the stages hold before they block their producer."""


class Reply:
    """An attempt to answer a turn. Call `run` once."""

    def __init__(
        self,
        request: actions.StartReply,
        recorder: Recorder,
        resources: Resources,
        gate: Gate,
        answer: Answer | None = None,
    ) -> None:
        """Prepare the reply that is requested. `answer` is the text of a skill or an announcement
        that is said instead; None if the language model replies."""
        self.asked = request
        self.gate = gate
        self.thinking = Thinking(request, recorder, resources, gate, answer)
        self._withheld: list[Event] = []
        """Events to show when the gate opens."""
        self._recorder = recorder
        self._resources = resources
        self._head_start_s = 0.0
        """Maximum seconds for which thinking pauses while the voice makes its first sound. 0 if
        stages do not overlap, or if audio must be queued before a slow voice plays."""

    def begin(self) -> None:
        """Make this reply the player's current reply. It sounds once the gate opens."""
        lead_s = self._resources.pace.lead_s
        at_once = self._resources.overlap.stages and not lead_s
        self._head_start_s = HEAD_START_S if at_once else 0.0
        self._resources.player.begin(self.asked.turn, self._recorder, lead_s=lead_s)

    def act(self, action: actions.ForReply) -> None:
        """Carry out an action of the core."""
        player = self._resources.player
        match action:
            case actions.Commit():
                self.commit()
            case actions.Drop():
                self.gate.drop()
            case actions.Hesitate():
                self.gate.hesitate(action.seconds)
            case actions.PauseReply():
                player.pause()
                self.gate.suspend()
            case actions.ResumeReply():
                self.gate.resume()
                player.resume()
            case actions.BringResult():
                self.returned(action.call, action.result)

    def returned(self, call: ToolCall, result: str) -> None:
        """Give the model the result of a call of voiceloop's own tools, and show both."""
        self.thinking.returned(call, result)
        if not call.problem:
            self._resources.show(replace(call, result=result))

    def commit(self) -> None:
        """Carry out the effects of a known answer, open the gate, and show the events withheld so
        far."""
        skills, answer = self._resources.skills, self.thinking.answer
        if answer is not None:
            skills.do(answer)
            self._resources.player.gain = skills.voice.gain
            if effect := self.thinking.effect:
                self._resources.show(effect)
        self.gate.commit()
        self._resources.player.open()
        withheld, self._withheld = self._withheld, []
        for event in withheld:
            self._resources.show(event)

    @asynccontextmanager
    async def run(self, voiced: Voiced) -> AsyncGenerator[Reports, None]:
        """Yield the generator of the reply's reports. The reply advances as they are consumed.

        Leaving the context waits until the whole reply has sounded, or until the guess is dropped.
        A drop cancels `gate.scope`.

        `voiced` is audio of earlier attempts at the turn. Clauses in it are reused, and new ones
        are added. A reply that was not committed leaves nothing behind in the player. If the
        language model fails, its text so far and an apology are spoken, and then its error is
        raised.
        """
        to_speak, cut = anyio.create_memory_object_stream[Clause](CLAUSES)
        to_play, spoken = anyio.create_memory_object_stream[SpeechChunk](CHUNKS)
        answer, resources, begun = self.thinking.answer, self._resources, anyio.current_time()
        voice = (answer and answer.voice) or resources.skills.voice
        speech = Speech(
            self.asked.options, self._recorder, resources, self.gate, voiced, voice.speed
        )
        try:
            with self.gate.scope:
                async with anyio.create_task_group() as stages:
                    stages.start_soon(speech.run, cut, to_play)
                    stages.start_soon(self._play, spoken)
                    # No wait before the yield: a reply may be cancelled before its first step.
                    yield self._think(to_speak, speech.begun)
                await self.gate.opened()  # a written or empty reply may be complete before it opens
                recorder, options = self._recorder, self.asked.options
                async with anyio.create_task_group() as meanwhile:
                    meanwhile.start_soon(self._work_ahead, recorder, options)
                    await self._resources.player.drain()
                    meanwhile.cancel_scope.cancel()
                if self.thinking.failure is not None:
                    raise self.thinking.failure
        finally:
            self._account(begun)

    async def _work_ahead(self, recorder: Recorder, options: Options) -> None:
        """Prepare the next turn while the reply sounds."""
        if self.thinking.answer is not None and self._resources.overlap.prefill:
            await catch_up(self._resources, recorder)
        await look_ahead(self._resources, recorder, "", recorder.turn + 1, options)

    async def _think(self, to_speak: ObjectSendStream[Clause], begun: anyio.Event) -> Reports:
        """Yield reports while thinking and cutting. An uncommitted reply stops after its first
        clause until the gate opens. Thinking also waits after each clause, for `_head_start_s` at
        most, until the speech has `begun`."""
        thinking, count = self.thinking, 0
        async with (
            to_speak,
            aclosing(self._thoughts()) as thoughts,
            aclosing(clauses(thoughts, thinking.language, self._tempo)) as cut,
        ):
            await anyio.lowlevel.checkpoint()  # lets the other stages start first
            async for found in cut:
                if not isinstance(found, Clause):
                    yield found
                    continue
                count += 1
                self._recorder.mark(Mark.FIRST_CLAUSE, anyio.current_time())
                if not self._resources.overlap.held_audio:
                    await self.gate.opened()
                await to_speak.send(replace(found, index=count - 1))
                await self.gate.opened()
                # Thinking takes cores and Python's lock from the voice, and its result is not
                # needed before this clause has sounded.
                with anyio.move_on_after(self._head_start_s):
                    await begun.wait()
            if text := (self.asked.options.spoken and thinking.question) or thinking.instead:
                # This text is normalised alone. Otherwise open markup in the reply would hide it.
                said = normalize(text, thinking.language)
                own, before = thinking.question_tokens, thinking.tokens - thinking.question_tokens
                spans = tuple(
                    Span(word.start, word.end, own and before + own * at // len(said.words))
                    for at, word in enumerate(said.words, 1)
                )
                last = Clause(self._recorder.turn, count, text, said.text, spans, last=True)
                await to_speak.send(last)

    def _tempo(self) -> Tempo:
        """Return how fast the reply is written and spoken. What rules say is there at once."""
        return Tempo() if self.thinking.answer is not None else self._resources.pace.tempo

    async def _thoughts(self) -> AsyncGenerator[TokenBurst | Clause | inputs.Input, None]:
        """Yield the text to be spoken and the reports to the core. Events are shown on the way."""
        request, thinking = self.asked, self.thinking
        begun, first, later = anyio.current_time(), True, list[TokenBurst]()
        async with aclosing(thinking.run()) as thoughts:
            async for thought in thoughts:
                if first:
                    first = False
                    yield self._read(begun)
                if isinstance(thought, inputs.ToolsCalled):
                    self._resources.player.expect_gaps()
                    yield thought
                elif isinstance(thought, ToolCall):
                    self._show(thought)
                elif thought and (waits := self._waits(thought)):
                    yield waits
                elif thought:
                    self._show(thought)
                    spoken = request.options.spoken and not thinking.question
                    if spoken and self._resources.overlap.stages:
                        yield thought
                    elif spoken:
                        later.append(thought)
        if first and thinking.answer is not None:
            yield self._read(begun)
        if thinking.instead:
            text = f" {thinking.instead}" if thinking.said else thinking.instead
            self._show(TokenBurst(self._recorder.turn, (), text))
        for burst in later:
            yield burst

    def _waits(self, burst: TokenBurst) -> Clause | None:
        """If `burst` says that the model is being loaded, show a sentence that says so, and return
        it as a clause. It is no part of the conversation. None if it was said before, and in a
        written reply."""
        thinking, text = self.thinking, self.thinking.language.loads
        wanted = LOADS in burst.facts and thinking.counts[LOADS] == 1
        if not (wanted and text and self.asked.options.spoken):
            return None
        self._resources.player.expect_gaps()
        self._show(TokenBurst(burst.turn, (), f"{text} "))
        said = normalize(text, thinking.language)
        spans = tuple(Span(word.start, word.end, thinking.tokens) for word in said.words)
        return Clause(burst.turn, 0, text, said.text, spans)

    def _read(self, begun: float) -> inputs.Read:
        """Return the report for the core that the language model has read the user's words."""
        found, request = self._resources.observer.standing, self.asked
        return inputs.Read(
            request.turn, request.text, found.end_probability, begun, found.exchanges
        )

    async def _play(self, spoken: MemoryObjectReceiveStream[SpeechChunk]) -> None:
        at_once = self._resources.overlap.stages
        async with spoken:
            async for chunk in spoken if at_once else _whole(spoken):
                await self._resources.player.play(chunk)

    def _show(self, event: Event) -> None:
        """Show an event, or withhold it while the reply is only a guess."""
        if self.gate.committed:
            self._resources.show(event)
        else:
            self._withheld.append(event)

    def _account(self, begun: float) -> None:
        """Record the reply in the trace: its span, from `begun` until now, and its counts. If it
        was dropped, take its marks back."""
        recorder, thinking, now = self._recorder, self.thinking, anyio.current_time()
        about: dict[str, float | str] = {"generated": thinking.tokens}
        if thinking.answer is not None:
            about["by"] = "skill"
        if self.gate.committed:
            until = now if thinking.until is None else thinking.until
            recorder.span(Lane.REPLY, REPLY, begun, until, **about)
            for name, count in thinking.counts.items():
                recorder.count(name, count)
            if thinking.limited:
                recorder.count("too_long")
            return
        recorder.span(Lane.REPLY, DROPPED_REPLY, begun, now, **about)
        self._resources.player.stop()
        recorder.count("replies_dropped")
        recorder.count("wasted_tokens", thinking.tokens + thinking.counts["unchosen"])
        recorder.retract(
            Mark.FIRST_BURST,
            Mark.FIRST_CLAUSE,
            Mark.FIRST_SYNTHESIS,
            Mark.REPLY_END,
            Mark.SYNTHESIS_END,
        )


async def _whole(source: MemoryObjectReceiveStream[T]) -> AsyncGenerator[T, None]:
    """Yield the items of a stream once it has ended."""
    for item in [item async for item in source]:
        yield item
