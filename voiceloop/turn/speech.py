"""Speech: what is thought becomes clauses, clauses become sound, and sound is played, all at once.

The stages are plain generators joined by bounded streams, so each works on what the one before has
given so far.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

import anyio
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream

from voiceloop.engines import T
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.tts.normalize import normalize
from voiceloop.tts.pace import AMPLE_S, LONG_CHARS, joined
from voiceloop.tts.stream import clauses
from voiceloop.turn.gate import Gate
from voiceloop.turn.resources import Resources
from voiceloop.turn.thinking import Thinking
from voiceloop.types import Clause, Span, SpeechChunk, TokenBurst

CLAUSES, CHUNKS = 8, 8
"""Items that the streams between the stages hold before they block their producer."""
Voiced = dict[tuple[str | None, Clause], list[SpeechChunk]]
"""Audio of clauses, by voice."""


class Speech:
    """What is thought becomes clauses, clauses become sound, and sound is played."""

    def __init__(
        self,
        thinking: Thinking,
        voice: str | None,
        recorder: Recorder,
        resources: Resources,
        gate: Gate,
        voiced: Voiced,
    ) -> None:
        """`voiced` is audio of former attempts, which is taken where it fits and added to."""
        self._thinking = thinking
        self._voice = voice
        self._recorder = recorder
        self._resources = resources
        self._gate = gate
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
        voice, count = self._thinking.language, 0
        async with aclosing(bursts), aclosing(clauses(bursts, voice)) as cut:
            async for clause in cut:
                count += 1
                self._recorder.mark(Mark.FIRST_CLAUSE, anyio.current_time())
                if not self._resources.overlap.held_audio:
                    await self._gate.opened()
                yield clause
                await self._gate.opened()
        if text := self._thinking.instead:
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
