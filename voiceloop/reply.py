"""Reply: one attempt to answer a turn, thinking, speaking and playing at once.

The stages are joined by bounded streams, so each works on what the one before has given so far. A
reply may be begun on the guess that the user has finished. Until it is committed nothing of it
leaves: its events are withheld, the player's gate is shut, tools wait, and no more is thought than
the first clause takes. Whether the guess was right is for the session to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream

from voiceloop.engines import Conversation, Engines, Steps, T
from voiceloop.errors import VoiceloopError
from voiceloop.languages import Language, language
from voiceloop.player import Player
from voiceloop.runner import FIRST, LATER
from voiceloop.trace import Lane, Mark, Recorder
from voiceloop.tts.normalize import normalize
from voiceloop.tts.pace import AMPLE_S, LONG_CHARS, Pace, joined
from voiceloop.tts.stream import clauses
from voiceloop.types import Clause, Event, Span, SpeechChunk, TokenBurst, ToolCall

CLAUSES, CHUNKS = 8, 8
"""Items that the streams between the stages hold before they block their producer."""
TOOL_ROUNDS = 4
"""How often a reply may go on after calls of tools; a model that wants more is going in circles."""


Returned = tuple[ToolCall, str]
"""A call of a tool, and what came back."""
Voiced = dict[tuple[str | None, Clause], list[SpeechChunk]]
"""Audio of clauses, by voice."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """What is done at once and ahead of time. Each can be left out, to measure what it is worth."""

    stages: bool = True
    """Recognition, thinking, synthesis and playback at once; otherwise each after the last, and
    none of the following."""
    prefill: bool = True
    """The language model reads the user's words while they speak."""
    early_reply: bool = True
    """The reply is begun in the first silence; otherwise the endpoint begins it."""
    carry_over: bool = True
    """A reply that was begun too early is the draft of the next; otherwise that starts afresh."""
    held_audio: bool = True
    """The first clause of an early reply is synthesised before the endpoint."""


EVERYTHING = Overlap()
SEQUENTIAL = Overlap(False, False, False, False, False)
"""Each stage after the last: the reference that everything is measured against."""
STREAMING = Overlap(True, False, False, False, False)
"""Stages overlap, and nothing is guessed but tokens."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What every reply of a session works with."""

    engines: Engines
    conversation: Conversation
    player: Player
    show: Callable[[Event], None]
    call: Callable[[ToolCall], str | None]
    """Runs a tool and returns what it says to the model; None where somebody else runs it, whose
    answer begins another reply."""
    overlap: Overlap = EVERYTHING
    pace: Pace = field(default_factory=Pace)


class Reply:
    """The answer to `text`. `run` it once; `commit` and `cancel` may come at any time."""

    def __init__(
        self,
        text: str,
        recorder: Recorder,
        stage: Stage,
        voiced: Voiced,
        urgency: Callable[[], int],
        *,
        anew: bool = False,
        returned: Sequence[Returned] = (),
        spoken: bool = True,
        voice: str | None = None,
        most: int | None = None,
        read: Callable[[], None] = lambda: None,
    ) -> None:
        """`voiced` is audio of former attempts at the turn, which is taken where it fits and added
        to; `anew` says that there have been some. `urgency` is the priority of what is done until
        it is committed. What tools `returned` stands in for `text`. A reply that is not `spoken`
        is written alone; others sound in `voice`, or the synthesizer's own. It ends with the burst
        that reaches `most` tokens. `read` is called when the model has read the text, with the
        first thing that it says."""
        self.text = text
        self.said = ""
        """What has been thought so far, as written."""
        self.instead: str | None = None
        """What is said because there is nothing in it to say; none where there is something."""
        self.apology = ""
        """What is said at the end because the language model failed."""
        self._worded = False
        """A clause of it had words."""
        self._recorder = recorder
        self._stage = stage
        self._voiced = voiced
        self._urgency = urgency
        self._anew = anew
        self._returned = returned
        self._spoken = spoken
        self._voice = voice
        self._most = most
        self._read = read
        self._scope = anyio.CancelScope()
        self._gate = anyio.Event()
        self._flowing = anyio.Event()
        self._flowing.set()
        self.too_long = False
        """It would have had more tokens than it may."""
        self.doubted = False
        """It answers what is probably not all that the user says."""
        self._hesitates_s = 0.0
        self._failure: VoiceloopError | None = None
        """Why the language model could not go on; `run` raises it when all has been said."""
        self.called: Sequence[tuple[ToolCall, str | None]] = ()
        """The calls that were made last, and what came back; None where somebody else runs it."""
        self._ahead = 0
        """Whole seconds of sound that there are to go on with."""
        self._withheld: list[Event] = []
        self._counts: Counter[str] = Counter()

    @property
    def tokens(self) -> int:
        """Tokens that have been thought so far."""
        return self._counts["tokens"]

    @property
    def committed(self) -> bool:
        """True once it may be seen and heard."""
        return self._gate.is_set()

    @property
    def dropped(self) -> bool:
        """True once the guess turned out wrong."""
        return self._scope.cancel_called

    def commit(self) -> None:
        """The user has finished: let out what was withheld, and go on."""
        self._gate.set()
        withheld, self._withheld = self._withheld, []
        for event in withheld:
            self._stage.show(event)
        self._stage.player.open()

    def cancel(self) -> None:
        """The guess was wrong; `run` returns False within one step of each model."""
        self._scope.cancel()

    def hesitate(self, seconds: float) -> None:
        """Think no further for so long or until `commit`: the guess is probably wrong."""
        self.doubted = True
        self._hesitates_s = seconds

    def suspend(self) -> None:
        """Think and synthesise no more, but for the steps that run, until `resume`."""
        if self._flowing.is_set():
            self._flowing = anyio.Event()

    def resume(self) -> None:
        """Go on."""
        self._flowing.set()

    async def run(self) -> bool:
        """Speak to the end; False where `cancel` came first.

        What was not committed leaves nothing behind in the player; else it is left as it is. Where
        the language model fails, what it has said is spoken, then an apology, and then its error is
        raised.
        """
        stage = self._stage
        stage.player.begin(self._recorder, lead_s=stage.pace.lead_s)
        if self.committed:
            stage.player.open()
        try:
            with self._scope:
                if not self._spoken:
                    async for _ in self._think_or_apologise():
                        pass
                elif stage.overlap.stages:
                    await self._at_once()
                else:
                    await self._in_sequence()
                await self._gate.wait()  # what is written, or says nothing, may be over before
                await stage.player.drain()
                if self._failure is not None:
                    raise self._failure
        finally:
            self._account()
        return not self._scope.cancelled_caught

    def _account(self) -> None:
        if self.committed:
            for name, count in self._counts.items():
                self._recorder.count(name, count)
            if self.too_long:
                self._recorder.count("too_long")
            return
        self._stage.player.stop()
        self._recorder.count("replies_dropped")
        self._recorder.count("wasted_tokens", self._counts["tokens"])
        self._recorder.retract(
            Mark.FIRST_BURST,
            Mark.FIRST_CLAUSE,
            Mark.FIRST_SYNTHESIS,
            Mark.REPLY_END,
            Mark.SYNTHESIS_END,
        )

    async def _at_once(self) -> None:
        send_clauses, cut = anyio.create_memory_object_stream[Clause](CLAUSES)
        send_chunks, chunks = anyio.create_memory_object_stream[SpeechChunk](CHUNKS)
        async with anyio.create_task_group() as stages, cut, chunks:
            stages.start_soon(pump, self._cut(self._think_or_apologise()), send_clauses)
            stages.start_soon(pump, self._speak(self._joined(cut)), send_chunks)
            async for chunk in chunks:
                await self._stage.player.play(chunk)

    async def _in_sequence(self) -> None:
        bursts = [burst async for burst in self._think_or_apologise()]
        cut = [clause async for clause in self._cut(_replayed(bursts))]
        for chunk in [chunk async for chunk in self._speak(_replayed(cut))]:
            await self._stage.player.play(chunk)

    async def _think_or_apologise(self) -> AsyncGenerator[TokenBurst, None]:
        """The reply's bursts; where the model fails, the last is a sentence that says so, which is
        no part of the conversation. Of a guess nobody learns that it failed until it is right."""
        try:
            async with aclosing(self._think()) as bursts:
                async for burst in bursts:
                    yield burst
        except VoiceloopError as error:
            await self._gate.wait()
            self._failure = error
            if self._spoken and (apology := self._voice_language().apology):
                self.apology = apology
                text = f"\n{apology}" if self.said else apology
                burst = TokenBurst(self._recorder.turn, (), text)
                self._tell(burst)
                yield burst

    async def _think(self) -> AsyncGenerator[TokenBurst, None]:
        """The reply's bursts, with the tools that it calls run in between."""
        stage, turn = self._stage, self._recorder.turn
        conversation = stage.conversation
        carried = self._anew and stage.overlap.carry_over
        begin = conversation.revise if carried else conversation.reply
        steps: Steps[TokenBurst | ToolCall]
        if self._returned:
            steps = conversation.tool_results(self._returned, turn)
        else:
            steps = begin(self.text, turn)
        unread = True
        for _ in range(TOOL_ROUNDS):
            calls: list[ToolCall] = []
            begun = anyio.current_time()
            runner = stage.engines.llm_runner
            async with aclosing(runner.stream(steps, priority=self._priority)) as items:
                async for item in items:
                    if unread:
                        unread = False
                        self._read()
                    self._note(item, begun)
                    if isinstance(item, ToolCall):
                        calls.append(item)
                        if not item.problem:
                            self._tell(item)
                    else:
                        self._tell(item)
                        self.said += item.text
                        yield item
                        if self._most is not None and self.tokens >= self._most:
                            self.too_long = True
                            break
                    if self._hesitates_s:
                        with anyio.move_on_after(self._hesitates_s):
                            await self._gate.wait()
                        self._hesitates_s = 0.0
                    await self._flowing.wait()
                    begun, self._ahead = anyio.current_time(), int(stage.player.ahead_s)
            if not calls or self.too_long:
                break
            await self._gate.wait()
            self.called = [(call, stage.call(call)) for call in calls]
            returned = [(call, result) for call, result in self.called if result is not None]
            if len(returned) < len(calls):
                break
            steps = conversation.tool_results(returned, turn)
        if not self._says_something():
            self.instead = self._voice_language().nothing if self._spoken else ""
        self._recorder.mark(Mark.REPLY_END, anyio.current_time())

    def _says_something(self) -> bool:
        """It has a word, or waits for what others call for it."""
        if any(result is None for _, result in self.called) or self._worded:
            return True
        if not self._spoken:
            return bool(self.said.strip())
        return bool(normalize(self.said, self._voice_language()).words)

    def _voice_language(self) -> Language:
        return language(self._stage.engines.tts.language(self._voice))

    def _priority(self) -> int:
        """A reply that nobody hears yet before those that have seconds of sound to go on with."""
        return min(FIRST + self._ahead, LATER - 1) if self.committed else self._urgency()

    def _tell(self, event: Event) -> None:
        if self.committed:
            self._stage.show(event)
        else:
            self._withheld.append(event)

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

    async def _cut(self, bursts: AsyncGenerator[TokenBurst, None]) -> AsyncGenerator[Clause, None]:
        """The clauses; a reply that is not committed ends with the first for the time being."""
        voice, count = self._voice_language(), 0
        async with aclosing(bursts), aclosing(clauses(bursts, voice)) as cut:
            async for clause in cut:
                self._worded, count = self._worded or bool(clause.spans), count + 1
                self._recorder.mark(Mark.FIRST_CLAUSE, anyio.current_time())
                if not self._stage.overlap.held_audio:
                    await self._gate.wait()
                yield clause
                await self._gate.wait()
        if self.instead:
            # By itself: what was written may have begun something that would swallow it.
            turn, text = self._recorder.turn, self.instead
            self._tell(TokenBurst(turn, (), f" {text}" if self.said else text))
            said = normalize(text, voice)
            spans = tuple(Span(word.start, word.end, 0) for word in said.words)
            yield Clause(turn, count, text, said.text, spans, last=True)

    async def _joined(self, cut: MemoryObjectReceiveStream[Clause]) -> AsyncGenerator[Clause, None]:
        """The clauses; those that are there at once are one where there is time for it."""
        player = self._stage.player
        async for clause in cut:
            whole = clause
            while player.ahead_s >= AMPLE_S and len(whole.text) < LONG_CHARS:
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
        engines, player = self._stage.engines, self._stage.player
        name = f"clause {clause.index + 1}"
        voiced: list[SpeechChunk] = []
        took, begun = 0.0, anyio.current_time()
        steps = engines.tts.synthesize(clause, self._voice)
        async with aclosing(engines.tts_runner.stream(steps, priority=self._priority)) as chunks:
            async for chunk in chunks:
                now = anyio.current_time()
                took += now - begun
                self._recorder.mark(Mark.FIRST_SYNTHESIS, now)
                self._recorder.span(Lane.TTS, name, begun, now, text=clause.text)
                voiced.append(chunk)
                yield chunk
                await self._flowing.wait()
                begun, self._ahead = anyio.current_time(), int(player.ahead_s)
        audio_s = sum(len(chunk.pcm) / chunk.rate for chunk in voiced)
        self._stage.pace.observe(audio_s, took)
        if not self.committed:
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
