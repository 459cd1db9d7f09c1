"""Reply: one attempt to answer a turn, thinking, speaking and playing at once.

    think (turn/thinking) | cut (tts/stream) | speak (turn/speech) | play (audio/player)

Each stage takes from the one before it, through a bounded stream where both work at once, and knows
nothing of who takes from it. What the core is to know of a thought comes out behind the cut, before
anything else is thought.

A reply may be begun on the guess that the user has finished. Until its gate opens nothing of it
leaves: it is not shown, the player stays silent, tools wait, and no more is thought than the first
clause takes. Whether the guess was right is for others to know.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import anyio
import anyio.lowlevel
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream

from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.inputs import Reports
from voiceloop.engines import T
from voiceloop.skills.known import Answer
from voiceloop.trace.record import Mark, Recorder
from voiceloop.tts.normalize import normalize
from voiceloop.tts.stream import clauses
from voiceloop.turn.ahead import look_ahead
from voiceloop.turn.gate import Gate
from voiceloop.turn.resources import Resources, Voiced
from voiceloop.turn.speech import Speech
from voiceloop.turn.thinking import Thinking
from voiceloop.types import Clause, Event, Span, SpeechChunk, TokenBurst, ToolCall

HEAD_START_S = 0.2
"""For so long at most nothing is thought while the voice makes its first sound: longer, and short
first clauses would be over before the next."""
CLAUSES, CHUNKS = 8, 8
"""Items that the streams between the stages hold before they block their producer."""


class Reply:
    """`run` it once."""

    def __init__(
        self,
        asked: actions.StartReply,
        recorder: Recorder,
        resources: Resources,
        gate: Gate,
        answer: Answer | None = None,
    ) -> None:
        """`answer` is one that is known without the language model."""
        self.asked = asked
        self.gate = gate
        self.thinking = Thinking(asked, recorder, resources, gate, answer)
        self._withheld: list[Event] = []
        """What is to be shown when the gate opens."""
        self._recorder = recorder
        self._resources = resources
        self._head_start_s = 0.0
        """Nothing where the sound begins with more than a clause, since the voice is slow."""

    def begin(self) -> None:
        """Let the player play nothing but this reply from now on, once the gate opens."""
        lead_s = self._resources.pace.lead_s
        at_once = self._resources.overlap.stages and not lead_s
        self._head_start_s = HEAD_START_S if at_once else 0.0
        self._resources.player.begin(self.asked.turn, self._recorder, lead_s=lead_s)

    def act(self, action: actions.ForReply) -> None:
        """Do what the core asks for."""
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

    def commit(self) -> None:
        """Let what a known answer does take effect, and open the gate."""
        skills, answer = self._resources.skills, self.thinking.answer
        if answer is not None:
            skills.do(answer)
            self._resources.player.gain = skills.voice.gain
        self.gate.commit()
        self._resources.player.open()
        withheld, self._withheld = self._withheld, []
        for event in withheld:
            self._resources.show(event)

    @asynccontextmanager
    async def run(self, voiced: Voiced) -> AsyncGenerator[Reports, None]:
        """Speak what is thought as the reports that this gives are gone through; leaving it waits
        until all of it has sounded, or the guess was dropped, which its `gate.scope` tells.

        `voiced` is audio of former attempts at the turn, which is taken where it fits and added
        to. What was not committed leaves nothing behind in the player; else it is left as it is.
        Where the language model fails, what it has said is spoken, then an apology, and then its
        error is raised.
        """
        to_speak, cut = anyio.create_memory_object_stream[Clause](CLAUSES)
        to_play, spoken = anyio.create_memory_object_stream[SpeechChunk](CHUNKS)
        answer, resources = self.thinking.answer, self._resources
        voice = (answer and answer.voice) or resources.skills.voice
        speech = Speech(
            self.asked.options, self._recorder, resources, self.gate, voiced, voice.speed
        )
        try:
            with self.gate.scope:
                async with anyio.create_task_group() as stages:
                    stages.start_soon(speech.run, cut, to_play)
                    stages.start_soon(self._play, spoken)
                    # Nothing here waits: what is called off before its first step has to get in.
                    yield self._think(to_speak, speech.begun)
                await self.gate.opened()  # what is written, or says nothing, may be over before
                recorder, options = self._recorder, self.asked.options
                async with anyio.create_task_group() as meanwhile:
                    meanwhile.start_soon(
                        look_ahead, self._resources, recorder, "", recorder.turn + 1, options
                    )
                    await self._resources.player.drain()
                    meanwhile.cancel_scope.cancel()
                if self.thinking.failure is not None:
                    raise self.thinking.failure
        finally:
            self._account()

    async def _think(self, to_speak: ObjectSendStream[Clause], begun: anyio.Event) -> Reports:
        """Think and cut. A reply that is not committed ends with the first clause for the time
        being; of others the voice has a head start, until its speech has `begun`."""
        thinking, count = self.thinking, 0
        async with (
            to_speak,
            aclosing(self._thoughts()) as thoughts,
            aclosing(clauses(thoughts, thinking.language)) as cut,
        ):
            await anyio.lowlevel.checkpoint()  # the other stages stand ready first
            async for found in cut:
                if not isinstance(found, Clause):
                    yield found
                    continue
                count += 1
                self._recorder.mark(Mark.FIRST_CLAUSE, anyio.current_time())
                if not self._resources.overlap.held_audio:
                    await self.gate.opened()
                await to_speak.send(found)
                await self.gate.opened()
                # Whoever thinks takes from the voice, be it cores or Python's lock, and what is
                # thought now is wanted once this clause has sounded.
                with anyio.move_on_after(self._head_start_s):
                    await begun.wait()
            if text := thinking.instead:
                # By itself: what was written may have begun something that would swallow it.
                said = normalize(text, thinking.language)
                spans = tuple(Span(word.start, word.end, 0) for word in said.words)
                last = Clause(self._recorder.turn, count, text, said.text, spans, last=True)
                await to_speak.send(last)

    async def _thoughts(self) -> AsyncGenerator[TokenBurst | inputs.Input, None]:
        """What is to be spoken, and what the core is to know; what is to be seen is shown."""
        asked, thinking = self.asked, self.thinking
        begun, first, later = anyio.current_time(), True, list[TokenBurst]()
        async with aclosing(thinking.run()) as thoughts:
            async for thought in thoughts:
                if first:
                    first = False
                    yield self._read(begun)
                match thought:
                    case inputs.ToolsCalled():
                        yield thought
                    case ToolCall(problem=problem):
                        if not problem:  # else nobody can call that
                            self._show(thought)
                    case TokenBurst():
                        self._show(thought)
                        if asked.options.spoken and self._resources.overlap.stages:
                            yield thought
                        elif asked.options.spoken:
                            later.append(thought)
        if first and thinking.answer is not None:
            yield self._read(begun)
        if thinking.instead:
            text = f" {thinking.instead}" if thinking.said else thinking.instead
            self._show(TokenBurst(self._recorder.turn, (), text))
        for burst in later:
            yield burst

    def _read(self, begun: float) -> inputs.Read:
        """The model has read what is answered."""
        found, asked = self._resources.observer.standing, self.asked
        return inputs.Read(asked.turn, asked.text, found.end_probability, begun, found.exchanges)

    async def _play(self, spoken: MemoryObjectReceiveStream[SpeechChunk]) -> None:
        at_once = self._resources.overlap.stages
        async with spoken:
            async for chunk in spoken if at_once else _whole(spoken):
                await self._resources.player.play(chunk)

    def _show(self, event: Event) -> None:
        """Show it, or keep it while this is only a guess."""
        if self.gate.committed:
            self._resources.show(event)
        else:
            self._withheld.append(event)

    def _account(self) -> None:
        recorder, thinking = self._recorder, self.thinking
        if self.gate.committed:
            for name, count in thinking.counts.items():
                recorder.count(name, count)
            if thinking.limited:
                recorder.count("too_long")
            return
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
    """The items, once all of them are there."""
    for item in [item async for item in source]:
        yield item
