"""The speaking stages: tokens in, clauses, audio out.

Plain generators without queue, task or clock: whoever joins them decides what runs at once. An
engine's steps are executed by the runner that is given; this module does not know which engine.
What a stage is given stays its giver's to close.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from voiceloop.engines import Runner, Tts
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.types import Clause, SpeechChunk, TokenBurst


async def clauses(bursts: AsyncIterator[TokenBurst]) -> AsyncGenerator[Clause, None]:
    """The clauses of one reply, each as soon as it is safe to cut; the last one has `last` set."""
    cutter: ClauseCutter | None = None
    async for burst in bursts:
        cutter = cutter or ClauseCutter(burst.turn)
        for clause in cutter.feed(burst):
            yield clause
    if cutter is not None:
        for clause in cutter.flush():
            yield clause


def synthesize(clause: Clause, tts: Tts, runner: Runner) -> AsyncGenerator[SpeechChunk, None]:
    """The audio of a clause, in chunks."""
    return runner.stream(tts.synthesize(clause))
