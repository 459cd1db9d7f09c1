"""Reply: one attempt to answer a turn, thinking, speaking and playing at once.

The stages are plain generators joined by bounded streams, so each works on what the one before has
given so far. A reply may be begun on the guess that the user has finished. Until its gate opens
nothing of it leaves: it is not shown, the player stays silent, tools wait, and no more is thought
than the first clause takes. Whether the guess was right is for others to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import anyio
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream

from voiceloop.audio.player import Player
from voiceloop.dialogue import actions
from voiceloop.engines import Conversation, Engines, Steps, T
from voiceloop.errors import VoiceloopError
from voiceloop.languages import Language, language
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.tts.normalize import normalize
from voiceloop.tts.pace import AMPLE_S, LONG_CHARS, Pace, joined
from voiceloop.tts.stream import clauses
from voiceloop.turn.gate import Gate
from voiceloop.turn.overlap import EVERYTHING, Overlap
from voiceloop.types import Clause, Event, Span, SpeechChunk, TokenBurst, ToolCall

CLAUSES, CHUNKS = 8, 8
"""Items that the streams between the stages hold before they block their producer."""
TOOL_ROUNDS = 4
"""How often a reply may go on after calls of tools; a model that wants more is going in circles."""
Voiced = dict[tuple[str | None, Clause], list[SpeechChunk]]
"""Audio of clauses, by voice."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What every reply of a session works with."""

    engines: Engines
    conversation: Conversation
    player: Player
    overlap: Overlap = EVERYTHING
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class Calls:
    """The tools that the model has called; those of ours return before it thinks on."""

    calls: Sequence[ToolCall]


class Reply:
    """What is thought, and what comes of it: `run` with what `think` yields, once."""

    def __init__(
        self, asked: actions.StartReply, recorder: Recorder, resources: Resources, gate: Gate
    ) -> None:
        self.asked = asked
        self.gate = gate
        self.said = ""
        """What has been thought so far, as written."""
        self.instead: str | None = None
        """What is said because there is nothing in it to say; none where there is something."""
        self.apology = ""
        """What is said at the end because the language model failed."""
        self.too_long = False
        """It would have had more tokens than it may."""
        self.called: Sequence[tuple[ToolCall, str | None]] = ()
        """The calls that were made last, and what came back; None where somebody else runs it."""
        self.withheld: list[Event] = []
        """What is to be shown when the gate opens."""
        self._recorder = recorder
        self._resources = resources
        self._failure: VoiceloopError | None = None
        """Why the language model could not go on; `run` raises it when all has been said."""
        self._counts: Counter[str] = Counter()
        resources.player.begin(recorder, lead_s=resources.pace.lead_s)

    @property
    def tokens(self) -> int:
        """Tokens that have been thought so far."""
        return self._counts["tokens"]

    @property
    def spoken(self) -> bool:
        """It sounds; otherwise it is written alone."""
        return self.asked.options.spoken

    @property
    def language(self) -> Language:
        """What its voice speaks."""
        return language(self._resources.engines.tts.language(self.asked.options.voice))

    def commit(self) -> list[Event]:
        """Open the gate; what is to be shown now."""
        self.gate.commit()
        self._resources.player.open()
        withheld, self.withheld = self.withheld, []
        return withheld

    def answer(self, call: ToolCall, result: str) -> None:
        """A tool has returned."""
        self.called = [(one, result if one is call else known) for one, known in self.called]

    async def run(self, bursts: AsyncGenerator[TokenBurst, None], voiced: Voiced) -> bool:
        """Speak to the end; False where the guess was dropped first.

        `voiced` is audio of former attempts at the turn, which is taken where it fits and added
        to. What was not committed leaves nothing behind in the player; else it is left as it is.
        Where the language model fails, what it has said is spoken, then an apology, and then its
        error is raised.
        """
        speech = Speech(self, self._recorder, self._resources, voiced)
        try:
            with self.gate.scope:
                if not self.spoken:
                    async with aclosing(bursts):
                        async for _ in bursts:
                            pass
                elif self._resources.overlap.stages:
                    await speech.at_once(bursts)
                else:
                    await speech.in_sequence(bursts)
                await self.gate.opened()  # what is written, or says nothing, may be over before
                await self._resources.player.drain()
                if self._failure is not None:
                    raise self._failure
        finally:
            self._account()
        return not self.gate.scope.cancelled_caught

    async def think(self) -> AsyncGenerator[TokenBurst | ToolCall | Calls, None]:
        """What the model says and calls. After `Calls`, results that `answer` gave are read.

        Where it fails, the last burst is an apology, which is no part of the conversation; of a
        guess nobody learns that until it is right.
        """
        try:
            async with aclosing(self._think()) as thoughts:
                async for thought in thoughts:
                    yield thought
            if not self._says_something():
                self.instead = self.language.nothing if self.spoken else ""
        except VoiceloopError as error:
            await self.gate.opened()
            self._failure = error
            if self.spoken and (apology := self.language.apology):
                self.apology = apology
                yield TokenBurst(self._recorder.turn, (), f"\n{apology}" if self.said else apology)

    async def _think(self) -> AsyncGenerator[TokenBurst | ToolCall | Calls, None]:
        runner, conversation = self._resources.engines.llm_runner, self._resources.conversation
        most, steps = self.asked.options.most_tokens, self._first_steps()
        for _ in range(TOOL_ROUNDS):
            calls: list[ToolCall] = []
            begun = anyio.current_time()
            async with aclosing(runner.stream(steps, priority=self.gate.priority)) as items:
                async for item in items:
                    self._note(item, begun)
                    if isinstance(item, ToolCall):
                        item = self._owned(item)
                        calls.append(item)
                    else:
                        self.said += item.text
                    yield item
                    if most is not None and self.tokens >= most:
                        self.too_long = True
                        break
                    await self.gate.resolved()
                    await self.gate.flowing()
                    begun, self.gate.ahead_s = (
                        anyio.current_time(),
                        int(self._resources.player.ahead_s),
                    )
            if not calls or self.too_long:
                break
            await self.gate.opened()
            self.called = [(call, None) for call in calls]
            yield Calls(calls)
            returned = [(call, result) for call, result in self.called if result is not None]
            if len(returned) < len(calls):
                break
            steps = conversation.tool_results(returned, self._recorder.turn)
        self._recorder.mark(Mark.REPLY_END, anyio.current_time())

    def _first_steps(self) -> Steps[TokenBurst | ToolCall]:
        conversation, turn = self._resources.conversation, self._recorder.turn
        if self.asked.returned:
            return conversation.tool_results(self.asked.returned, turn)
        carried = self.asked.revises and self._resources.overlap.carry_over
        begin = conversation.revise if carried else conversation.reply
        return begin(self.asked.text, turn)

    def _owned(self, call: ToolCall) -> ToolCall:
        client = not call.problem and call.name in self.asked.options.client_tools
        return replace(call, client=client)

    def _says_something(self) -> bool:
        """It has a word, or waits for what others call for it."""
        if any(result is None for _, result in self.called):
            return True
        if not self.spoken:
            return bool(self.said.strip())
        return bool(normalize(self.said, self.language).words)

    def _note(self, item: TokenBurst | ToolCall, begun: float) -> None:
        now = anyio.current_time()
        self._recorder.mark(Mark.FIRST_BURST, now)
        if isinstance(item, ToolCall):
            self._recorder.span(Lane.DECODE, f"call {item.name}", begun, now)
            return
        self._counts.update(tokens=len(item.ids), drafted=item.drafted, accepted=item.accepted)
        self._recorder.span(
            Lane.DECODE,
            "round",
            begun,
            now,
            tokens=len(item.ids),
            drafted=item.drafted,
            accepted=item.accepted,
            text=item.text,
        )

    def _account(self) -> None:
        if self.gate.committed:
            for name, count in self._counts.items():
                self._recorder.count(name, count)
            if self.too_long:
                self._recorder.count("too_long")
            return
        self._resources.player.stop()
        self._recorder.count("replies_dropped")
        self._recorder.count("wasted_tokens", self._counts["tokens"])
        self._recorder.retract(
            Mark.FIRST_BURST,
            Mark.FIRST_CLAUSE,
            Mark.FIRST_SYNTHESIS,
            Mark.REPLY_END,
            Mark.SYNTHESIS_END,
        )


class Speech:
    """What is thought becomes clauses, clauses become sound, and sound is played."""

    def __init__(
        self, reply: Reply, recorder: Recorder, resources: Resources, voiced: Voiced
    ) -> None:
        self._reply = reply
        self._gate = reply.gate
        self._voice = reply.asked.options.voice
        self._recorder = recorder
        self._resources = resources
        self._player = resources.player
        self._voiced = voiced

    async def at_once(self, bursts: AsyncGenerator[TokenBurst, None]) -> None:
        """Each stage works on what the one before has given so far."""
        send_clauses, cut = anyio.create_memory_object_stream[Clause](CLAUSES)
        send_chunks, chunks = anyio.create_memory_object_stream[SpeechChunk](CHUNKS)
        async with anyio.create_task_group() as stages, cut, chunks:
            stages.start_soon(pump, self._cut(bursts), send_clauses)
            stages.start_soon(pump, self._speak(self._joined(cut)), send_chunks)
            async for chunk in chunks:
                await self._player.play(chunk)

    async def in_sequence(self, bursts: AsyncGenerator[TokenBurst, None]) -> None:
        """Each stage begins when the one before has done all."""
        thought = [burst async for burst in bursts]
        cut = [clause async for clause in self._cut(_replayed(thought))]
        for chunk in [chunk async for chunk in self._speak(_replayed(cut))]:
            await self._player.play(chunk)

    async def _cut(self, bursts: AsyncGenerator[TokenBurst, None]) -> AsyncGenerator[Clause, None]:
        """The clauses; a reply that is not committed ends with the first for the time being."""
        voice, count = self._reply.language, 0
        async with aclosing(bursts), aclosing(clauses(bursts, voice)) as cut:
            async for clause in cut:
                count += 1
                self._recorder.mark(Mark.FIRST_CLAUSE, anyio.current_time())
                if not self._resources.overlap.held_audio:
                    await self._gate.opened()
                yield clause
                await self._gate.opened()
        if text := self._reply.instead:
            # By itself: what was written may have begun something that would swallow it.
            said = normalize(text, voice)
            spans = tuple(Span(word.start, word.end, 0) for word in said.words)
            yield Clause(self._recorder.turn, count, text, said.text, spans, last=True)

    async def _joined(self, cut: MemoryObjectReceiveStream[Clause]) -> AsyncGenerator[Clause, None]:
        """The clauses; those that are there at once are one where there is time for it."""
        async for clause in cut:
            whole = clause
            while self._player.ahead_s >= AMPLE_S and len(whole.text) < LONG_CHARS:
                try:
                    whole = joined(whole, cut.receive_nowait())
                except (anyio.WouldBlock, anyio.EndOfStream):
                    break
            yield whole

    async def _speak(self, cut: AsyncGenerator[Clause, None]) -> AsyncGenerator[SpeechChunk, None]:
        async with aclosing(cut):
            async for clause in cut:
                async with aclosing(self._say(clause)) as chunks:
                    async for chunk in chunks:
                        yield chunk
        self._recorder.mark(Mark.SYNTHESIS_END, anyio.current_time())

    async def _say(self, clause: Clause) -> AsyncGenerator[SpeechChunk, None]:
        """The clause's audio, that of a former attempt where there is one."""
        if known := self._voiced.get((self._voice, clause)):
            self._recorder.count("clauses_kept")
            self._recorder.mark(Mark.FIRST_SYNTHESIS, anyio.current_time())
            for chunk in known:
                yield chunk
            return
        engines = self._resources.engines
        name = f"clause {clause.index + 1}"
        voiced: list[SpeechChunk] = []
        took, begun = 0.0, anyio.current_time()
        steps = engines.tts.synthesize(clause, self._voice)
        stream = engines.tts_runner.stream(steps, priority=self._gate.priority)
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                now = anyio.current_time()
                took += now - begun
                self._recorder.mark(Mark.FIRST_SYNTHESIS, now)
                self._recorder.span(Lane.TTS, name, begun, now, text=clause.text)
                voiced.append(chunk)
                yield chunk
                await self._gate.flowing()
                begun, self._gate.ahead_s = anyio.current_time(), int(self._player.ahead_s)
        audio_s = sum(len(chunk.pcm) / chunk.rate for chunk in voiced)
        self._resources.pace.observe(audio_s, took)
        if not self._gate.committed:
            self._voiced[self._voice, clause] = voiced


async def pump(source: AsyncGenerator[T, None], sink: ObjectSendStream[T]) -> None:
    """Join two stages: move what `source` yields to `sink`, and close both at the end."""
    async with sink, aclosing(source):
        async for item in source:
            await sink.send(item)


async def _replayed(items: Iterable[T]) -> AsyncGenerator[T, None]:
    """The items as a stage."""
    for item in items:
        yield item
