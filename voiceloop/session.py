"""Session: the conversation loop, from a microphone's frames to a speaker's samples.

Each turn of the user is one task with one cancel scope. While the user talks, it recognises what
has been said so far and prefills the language model with the words that are settled; at the first
silence the final decode runs ahead of the endpoint decision; after the decision the reply's tokens,
clauses and audio flow through bounded streams, so that every stage works at once. The only things
that flow back are back-pressure, cancellation, and how much of the reply was heard.

The session knows no device and no model: microphone, speaker, engines and runners are given to it,
and all its waiting goes through anyio, so it runs the same on a virtual clock.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import anyio
from anyio.abc import ObjectSendStream, TaskGroup

from voiceloop.asr.stream import StreamingTranscriber
from voiceloop.audio import SPEECH_RATE, Framer, SampleBuffer
from voiceloop.config import Config
from voiceloop.devices import Microphone, Player, Speaker
from voiceloop.engines import Asr, Conversation, Llm, Runner, T, Tts, Vad
from voiceloop.errors import VoiceloopError
from voiceloop.tools import ToolResult, run_tool
from voiceloop.trace import Lane, Mark, Recorder
from voiceloop.tts.stream import clauses, synthesize
from voiceloop.turns import SpeechPaused, SpeechResumed, SpeechStarted, TurnDetector, TurnEnded
from voiceloop.types import (
    AudioFrame,
    Clause,
    Notice,
    Outcome,
    SpeechChunk,
    TokenBurst,
    ToolCall,
    Transcript,
    TurnTrace,
)

logger = logging.getLogger(__name__)

Event = Transcript | TokenBurst | ToolCall | Clause | Notice | TurnTrace
"""What a session tells whoever watches it; a `Clause` is told as it begins to sound."""

FIRST, LATER = 0, 10
"""Priorities: final before partial, committed before speculative."""
BURSTS, CHUNKS = 32, 8
"""Items that the streams between the stages of a reply hold before they block their producer."""
RECENT_S = 2.0
"""Audio kept for the beginning of a turn; more than any pre-roll."""
TOOL_ROUNDS = 4
"""Calls of tools in one turn; a model that wants more is going in circles."""


@dataclass(frozen=True, slots=True)
class Engines:
    """The loaded models, each with the runner that executes its steps."""

    vad: Vad
    asr: Asr
    asr_runner: Runner
    llm: Llm
    llm_runner: Runner
    tts: Tts
    tts_runner: Runner


@dataclass(slots=True, eq=False)
class _Turn:
    """A turn of the user and the reply to it, while they are live."""

    number: int
    recorder: Recorder
    transcriber: StreamingTranscriber
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    """Set once the turn's task has given everything back."""
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set, and replaced, when there is audio or an event to look at."""
    ended: bool = False
    """The endpoint has been decided."""
    final: Transcript | None = None
    """Set once every sample before the endpoint has been decoded."""
    stable: str = ""
    """The part of the transcript worth prefilling."""
    carried: str = ""
    """What the user said before, where they went on before it was answered."""
    replying: bool = False

    def wake(self) -> None:
        """Let the turn's tasks look again."""
        self.changed.set()
        self.changed = anyio.Event()


async def pump(source: AsyncGenerator[T, None], sink: ObjectSendStream[T]) -> None:
    """Join two stages: move what `source` yields to `sink`, and close both at the end."""
    async with sink, aclosing(source):
        async for item in source:
            await sink.send(item)


async def replay(items: Iterable[T]) -> AsyncGenerator[T, None]:
    """The items as a stage."""
    for item in items:
        yield item


class Session:
    """One conversation. `run` it once."""

    def __init__(
        self,
        engines: Engines,
        microphone: Microphone,
        speaker: Speaker,
        config: Config,
        show: Callable[[Event], None],
        *,
        full_duplex: bool = False,
        sequential: bool = False,
        wall_clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`full_duplex` goes on hearing while a reply sounds, so that it can be interrupted.

        `sequential` runs each stage after the last, with the same models and the same endpoint
        decisions: what the overlap of stages is measured against.
        """
        self._engines = engines
        self._microphone = microphone
        self._config = config
        self._show = show
        self._full_duplex = full_duplex
        self._sequential = sequential
        self._wall_clock = wall_clock
        self._player = Player(speaker, on_clause=show)
        self._conversation: Conversation = engines.llm.conversation(
            system=config.llm.system, seed=config.llm.seed
        )
        self._framer = Framer(size=engines.vad.frame)
        self._detector = TurnDetector(config.turns)
        self._recent = SampleBuffer()
        self._arrivals: deque[tuple[int, float]] = deque(maxlen=3000)
        self._heard_turn: _Turn | None = None
        """The turn that is being heard."""
        self._last_turn: _Turn | None = None
        """The newest turn of all; turns run one after the other."""
        self._turns = 0
        self._timers = 0

    async def run(self) -> None:
        """Converse until the microphone has finished and every turn is over."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._player.run)
            async with aclosing(self._microphone.frames()) as frames:
                async for frame in frames:
                    self._hear(frame, tasks)
                    if self._microphone.finished and self._heard_turn is None:
                        break
            if self._last_turn is not None:
                await self._last_turn.over.wait()
            if self._timers:
                self._show(Notice(f"{self._timers} timer(s) end with this session"))
            tasks.cancel_scope.cancel()
        self._conversation.close()

    # ---- hearing: everything here is synchronous, so no frame is ever late

    def _hear(self, frame: AudioFrame, tasks: TaskGroup) -> None:
        now = anyio.current_time()
        self._arrivals.append((frame.end, now))
        self._recent.append(frame.pcm)
        if self._heard_turn is not None:
            self._heard_turn.transcriber.feed(frame)
        for window in self._framer.feed(frame.pcm):
            for event in self._detector.feed(window, self._engines.vad.probability(window.pcm)):
                match event:
                    case SpeechStarted():
                        self._begin_turn(event, tasks)
                    case SpeechPaused() | SpeechResumed() | TurnEnded():
                        self._turn_event(event, now)
        if self._heard_turn is not None:
            self._heard_turn.wake()
        self._recent.drop(frame.end - round(RECENT_S * SPEECH_RATE))

    def _begin_turn(self, event: SpeechStarted, tasks: TaskGroup) -> None:
        previous = self._last_turn
        if previous is not None and previous.replying and not previous.over.is_set():
            self._player.stop()
            previous.scope.cancel()
        self._turns += 1
        recorder = Recorder(self._turns)
        recorder.mark(Mark.SPEECH_START, self._when(event.speech_start))
        transcriber = StreamingTranscriber(
            self._turns, event, self._recent, self._config.asr, self._engines.asr.max_window_s
        )
        turn = _Turn(self._turns, recorder, transcriber)
        self._heard_turn = self._last_turn = turn
        tasks.start_soon(self._take_turn, turn, previous, tasks)

    def _turn_event(self, event: SpeechPaused | SpeechResumed | TurnEnded, now: float) -> None:
        turn = self._heard_turn
        assert turn is not None, "the detector begins a turn before anything happens in it"
        match event:
            case SpeechResumed():
                turn.transcriber.resume()
                turn.recorder.retract(Mark.PAUSE, Mark.SPEECH_END)
            case SpeechPaused():
                turn.transcriber.pause(event)
                turn.recorder.mark(Mark.SPEECH_END, self._when(event.speech_end))
                turn.recorder.mark(Mark.PAUSE, now)
            case TurnEnded():
                turn.ended = True
                turn.recorder.mark(Mark.SPEECH_END, self._when(event.speech_end))
                turn.recorder.mark(Mark.ENDPOINT, now)
                if final := turn.transcriber.end(event):
                    self._note_transcript(turn, final)
                turn.wake()
                self._heard_turn = None
                if not self._full_duplex:
                    self._microphone.hold()

    def _when(self, sample: int) -> float:
        """When a sample was recorded: frames arrive as their last sample is."""
        for end, arrival in self._arrivals:
            if end >= sample:
                return arrival - (end - sample) / SPEECH_RATE
        return anyio.current_time()

    # ---- a turn

    async def _take_turn(self, turn: _Turn, previous: _Turn | None, tasks: TaskGroup) -> None:
        outcome: Outcome = "interrupted"
        heard = ""
        with turn.scope:
            try:
                text = await self._recognise(turn, previous)
                if not text:
                    outcome = "abandoned"
                elif (newer := self._last_turn) is not None and newer is not turn:
                    # The user went on before there was a reply: both are one turn.
                    newer.carried = text
                    outcome = "abandoned"
                else:
                    heard = await self._answer(turn, text, tasks)
                    outcome = "done"
            except Exception as error:
                # A stage that fails ends its turn, never the session.
                logger.exception("turn %d failed", turn.number)
                outcome = "failed"
                while isinstance(error, ExceptionGroup):
                    error = error.exceptions[0]
                reason = error.message if isinstance(error, VoiceloopError) else repr(error)
                self._show(Notice(f"the reply failed: {reason}"))
        if outcome != "done" and turn.replying:
            heard = self._conversation.heard(self._player.stop().tokens).strip()
        turn.over.set()
        if not self._full_duplex:
            self._microphone.release()
        self._show(turn.recorder.trace(outcome, heard))

    async def _recognise(self, turn: _Turn, previous: _Turn | None) -> str:
        """Follow the user's words until the endpoint, prefilling the settled ones."""
        async with anyio.create_task_group() as tasks:
            if not self._sequential:
                tasks.start_soon(self._prefill, turn, previous)
            while turn.final is None:
                changed = turn.changed
                overlap = turn.ended or not self._sequential
                job = turn.transcriber.next_job() if overlap else None
                if job is None:
                    await changed.wait()
                    continue
                begun = anyio.current_time()
                words = await self._engines.asr_runner.call(
                    partial(self._engines.asr.transcribe, job.pcm, final=job.final),
                    priority=FIRST if job.final else LATER,
                )
                name = "final" if job.final else "partial"
                text = " ".join(word.text for word in words)
                now = anyio.current_time()
                turn.recorder.span(Lane.ASR, name, begun, now, words=len(words), text=text)
                self._note_transcript(turn, turn.transcriber.accept(job, words))
            tasks.cancel_scope.cancel()
        if previous is not None:
            await previous.over.wait()
        assert turn.final is not None
        return f"{turn.carried} {turn.final.text}".strip()

    def _note_transcript(self, turn: _Turn, transcript: Transcript) -> None:
        now = anyio.current_time()
        if transcript.text:
            turn.recorder.mark(Mark.FIRST_PARTIAL, now)
        if transcript.final:
            turn.final = transcript
            turn.recorder.mark(Mark.TRANSCRIPT_FINAL, now)
            turn.recorder.count("retracted_words", turn.transcriber.retracted)
        guess = turn.transcriber.guess
        turn.stable = guess.text if guess else transcript.committed_text
        self._show(transcript)
        turn.wake()

    async def _prefill(self, turn: _Turn, previous: _Turn | None) -> None:
        """Keep the language model's caches at the settled words, always the newest ones."""
        if previous is not None:
            await previous.over.wait()
        done = ""
        while True:
            changed = turn.changed
            stable = f"{turn.carried} {turn.stable}".strip()
            if stable == done:
                await changed.wait()
                continue
            done, begun = stable, anyio.current_time()
            turn.recorder.mark(Mark.PREFILL_START, begun)
            steps = self._engines.llm_runner.stream(
                self._conversation.prefill(done), priority=LATER
            )
            async with aclosing(steps):
                async for _ in steps:
                    pass
            turn.recorder.span(Lane.PREFILL, "prefill", begun, anyio.current_time(), text=done)

    # ---- a reply

    async def _answer(self, turn: _Turn, text: str, tasks: TaskGroup) -> str:
        turn.replying = True
        self._player.begin(turn.recorder)
        self._player.open()
        said: list[str] = []
        thought = self._think(turn, text, said, tasks)
        if self._sequential:
            bursts = [burst async for burst in thought]
            cut = [clause async for clause in self._cut(turn, replay(bursts))]
            chunks = [chunk async for chunk in self._speak(turn, replay(cut))]
            for chunk in chunks:
                await self._player.play(chunk)
        else:
            await self._overlap(turn, thought)
        await self._player.drain()
        return "".join(said).strip()

    async def _overlap(self, turn: _Turn, thought: AsyncGenerator[TokenBurst, None]) -> None:
        """Think, speak and play at once."""
        send_bursts, bursts = anyio.create_memory_object_stream[TokenBurst](BURSTS)
        send_chunks, chunks = anyio.create_memory_object_stream[SpeechChunk](CHUNKS)
        async with anyio.create_task_group() as stages, bursts, chunks:
            stages.start_soon(pump, thought, send_bursts)
            stages.start_soon(pump, self._speak(turn, self._cut(turn, bursts)), send_chunks)
            async for chunk in chunks:
                await self._player.play(chunk)

    async def _think(
        self, turn: _Turn, text: str, said: list[str], tasks: TaskGroup
    ) -> AsyncGenerator[TokenBurst, None]:
        """The reply's bursts, with the tools that it calls run in between."""
        steps = self._conversation.reply(text, turn.number)
        for _ in range(TOOL_ROUNDS):
            call: ToolCall | None = None
            begun = anyio.current_time()
            async with aclosing(self._engines.llm_runner.stream(steps, priority=FIRST)) as items:
                async for item in items:
                    self._note_round(turn, item, begun)
                    self._show(item)
                    if isinstance(item, ToolCall):
                        call = item
                    else:
                        said.append(item.text)
                        yield item
                    begun = anyio.current_time()
            if call is None:
                break
            result = run_tool(call.name, call.arguments, self._wall_clock())
            if result.rings_after:
                tasks.start_soon(self._ring, result)
            steps = self._conversation.tool_result(call, result.text, turn.number)
        turn.recorder.mark(Mark.REPLY_END, anyio.current_time())

    def _note_round(self, turn: _Turn, item: TokenBurst | ToolCall, begun: float) -> None:
        now = anyio.current_time()
        turn.recorder.mark(Mark.FIRST_BURST, now)
        if isinstance(item, ToolCall):
            turn.recorder.span(Lane.DECODE, f"call {item.name}", begun, now)
            return
        for name, count in (("drafted", item.drafted), ("accepted", item.accepted)):
            turn.recorder.count(name, count)
        turn.recorder.count("tokens", len(item.ids))
        turn.recorder.span(
            Lane.DECODE,
            "round",
            begun,
            now,
            tokens=len(item.ids),
            drafted=item.drafted,
            accepted=item.accepted,
            text=item.text,
        )

    async def _cut(
        self, turn: _Turn, bursts: AsyncIterator[TokenBurst]
    ) -> AsyncGenerator[Clause, None]:
        async with aclosing(clauses(bursts)) as cut:
            async for clause in cut:
                turn.recorder.mark(Mark.FIRST_CLAUSE, anyio.current_time())
                yield clause

    async def _speak(
        self, turn: _Turn, cut: AsyncGenerator[Clause, None]
    ) -> AsyncGenerator[SpeechChunk, None]:
        async with aclosing(cut):
            async for clause in cut:
                name, begun = f"clause {clause.index + 1}", anyio.current_time()
                steps = synthesize(clause, self._engines.tts, self._engines.tts_runner)
                async with aclosing(steps) as chunks:
                    async for chunk in chunks:
                        now = anyio.current_time()
                        turn.recorder.mark(Mark.FIRST_SYNTHESIS, now)
                        turn.recorder.span(Lane.TTS, name, begun, now, text=clause.text)
                        yield chunk
                        begun = anyio.current_time()
        turn.recorder.mark(Mark.SYNTHESIS_END, anyio.current_time())

    async def _ring(self, result: ToolResult) -> None:
        """Tell the user when a timer is over."""
        self._timers += 1
        await anyio.sleep(result.rings_after)
        self._timers -= 1
        self._show(Notice(result.rings))
