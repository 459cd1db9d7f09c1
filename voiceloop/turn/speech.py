"""Speech: synthesises the clauses of a reply, as fast as the reply's gate allows."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

import anyio
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream

from voiceloop.dialogue.state import Options
from voiceloop.engines import FIRST, LATER, Priority
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.tts.pace import AMPLE_S, LONG_CHARS, joined
from voiceloop.turn.resources import Resources, Voiced
from voiceloop.types import Clause, SpeechChunk


class Gate:
    """The latch that says what a reply may do. Its owner may change it at any time."""

    def __init__(self, *, urgent: bool) -> None:
        self.urgent = urgent
        """Whether the user has finished. Until then the reply's work is a guess."""
        self._ahead_s = 0.0
        self.priority = Priority(FIRST if urgent else LATER)
        """Priority of the reply's steps. After the endpoint, a reply without audio goes before
        replies that have a second or more of audio to play."""
        self.scope = anyio.CancelScope()
        """Cancel scope around all work of the reply. If it is cancelled, since the guess was wrong,
        the work ends within one step of each model."""
        self.hesitates_s = 0.0
        """Seconds for which thinking pauses, or until `commit`, since the guess is probably
        wrong."""
        self._committed = anyio.Event()
        self._flowing = anyio.Event()
        self._flowing.set()

    @property
    def committed(self) -> bool:
        """Whether the reply may be seen and heard."""
        return self._committed.is_set()

    def hurry(self) -> None:
        """Note that the user has finished, so that the reply's work is no guess any more."""
        self.urgent = True
        self._rank()

    def commit(self) -> None:
        """Let the reply out, because the user has finished and has said exactly the words that it
        answers."""
        self._committed.set()
        self._rank()

    def has_audio(self, seconds: float) -> None:
        """Note how many seconds of audio wait to be played. Each whole second lowers the priority
        of a committed reply."""
        self._ahead_s = seconds
        self._rank()

    def _rank(self) -> None:
        if self.committed:
            self.priority.level = min(FIRST + int(self._ahead_s), LATER - 1)
        elif self.urgent:
            self.priority.level = FIRST

    def suspend(self) -> None:
        """Pause thinking and synthesis until `resume`. Steps that run are finished."""
        if self._flowing.is_set():
            self._flowing = anyio.Event()

    def resume(self) -> None:
        """Go on after `suspend`."""
        self._flowing.set()

    async def opened(self) -> None:
        """Wait for `commit`."""
        await self._committed.wait()

    async def resolved(self) -> None:
        """Wait for `hesitates_s`, or until `commit`."""
        if self.hesitates_s:
            with anyio.move_on_after(self.hesitates_s):
                await self.opened()
            self.hesitates_s = 0.0

    async def flowing(self) -> None:
        """Wait while the reply is suspended."""
        await self._flowing.wait()


@dataclass(frozen=True, slots=True)
class Speech:
    """The synthesis of the clauses of one reply. Call `run` once."""

    options: Options
    recorder: Recorder
    resources: Resources
    gate: Gate
    voiced: Voiced
    """Audio of earlier attempts. Clauses in it are reused, and new ones are added."""
    speed: float
    begun: anyio.Event = field(default_factory=anyio.Event)
    """Event that is set once the first clause has made a sound, or is over without one."""

    async def run(
        self, cut: MemoryObjectReceiveStream[Clause], to_play: ObjectSendStream[SpeechChunk]
    ) -> None:
        """Synthesise the clauses from `cut`, and send their audio to `to_play`. Closes both streams
        at the end."""
        async with to_play, cut:
            async for clause in cut:
                await self._say(self._joined(clause, cut), to_play)
                self.begun.set()
            if self.options.spoken:
                self.recorder.mark(Mark.SYNTHESIS_END, anyio.current_time())

    def _joined(self, clause: Clause, cut: MemoryObjectReceiveStream[Clause]) -> Clause:
        """Return `clause`, joined with clauses that are ready while much audio is queued."""
        while self.resources.player.ahead_s >= AMPLE_S and len(clause.text) < LONG_CHARS:
            try:
                clause = joined(clause, cut.receive_nowait())
            except (anyio.WouldBlock, anyio.EndOfStream):
                break
        return clause

    async def _say(self, clause: Clause, to_play: ObjectSendStream[SpeechChunk]) -> None:
        """Send a clause's audio: from an earlier attempt, or synthesised now."""
        place = self.options.voice, self.speed, clause
        if known := self.voiced.get(place):
            self.recorder.count("clauses_kept")
            self.recorder.mark(Mark.FIRST_SYNTHESIS, anyio.current_time())
            for chunk in known:
                await self._send(chunk, to_play)
            return
        engines = self.resources.engines
        name = f"clause {clause.index + 1}"
        voiced: list[SpeechChunk] = []
        took, start_s, begun = 0.0, 0.0, anyio.current_time()
        steps = engines.tts.synthesize(clause, self.options.voice, self.speed)
        stream = engines.tts_runner.stream(steps, priority=self.gate.priority)
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                now = anyio.current_time()
                took += now - begun
                start_s = start_s or took
                self.recorder.mark(Mark.FIRST_SYNTHESIS, now)
                self.recorder.span(Lane.TTS, name, begun, now, text=clause.text)
                voiced.append(chunk)
                await self._send(chunk, to_play)
                await self.gate.flowing()
                begun = anyio.current_time()
                self.gate.has_audio(self.resources.player.ahead_s)
        audio_s = sum(len(chunk.pcm) / chunk.rate for chunk in voiced)
        self.resources.pace.observe(audio_s, took)
        self.resources.pace.spoke(len(clause.text), audio_s, start_s)
        if not self.gate.committed:
            self.voiced[place] = voiced

    async def _send(self, chunk: SpeechChunk, to_play: ObjectSendStream[SpeechChunk]) -> None:
        self.begun.set()
        await to_play.send(chunk)
