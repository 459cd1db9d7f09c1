"""The stage between thinking and speaking: tokens in, clauses out.

A plain generator without queue, task or clock: whoever joins it to others decides what runs at
once. What it is given stays its giver's to close.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from voiceloop.engines import T
from voiceloop.languages import Language
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.types import Clause, TokenBurst


async def clauses(
    bursts: AsyncIterator[TokenBurst | T], language: Language
) -> AsyncGenerator[Clause | T, None]:
    """The clauses of one reply, to be spoken in `language`, each as soon as it is safe to cut; the
    last one has `last` set. What is no burst goes through as it comes."""
    cutter: ClauseCutter | None = None
    async for burst in bursts:
        if not isinstance(burst, TokenBurst):
            yield burst
            continue
        cutter = cutter or ClauseCutter(burst.turn, language)
        for clause in cutter.feed(burst):
            yield clause
    if cutter is not None:
        for clause in cutter.flush():
            yield clause
