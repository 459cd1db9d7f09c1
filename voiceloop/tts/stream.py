"""The stage between language model and synthesizer: tokens in, clauses out.

It is a plain generator without queue, task or clock. Its caller decides what runs at the same time,
and closes the stream that it passed in.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable

from voiceloop.engines import T
from voiceloop.languages import Language
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.tts.pace import Tempo
from voiceloop.types import Clause, TokenBurst


async def clauses(
    bursts: AsyncIterator[TokenBurst | T],
    language: Language,
    tempo: Callable[[], Tempo] = Tempo,
) -> AsyncGenerator[Clause | T, None]:
    """Yield the clauses of one reply, to be spoken in `language`. Each comes when it can safely be
    cut. The last one has `last` set. `tempo` returns how fast the reply is written and spoken.

    Items that are not bursts are passed on. Before such an item, the rest of the text is yielded
    as a clause, because the next text may take long to come.
    """
    cutter: ClauseCutter | None = None
    async for burst in bursts:
        if not isinstance(burst, TokenBurst):
            if cutter is not None:
                for clause in cutter.cut_off():
                    yield clause
            yield burst
            continue
        cutter = cutter or ClauseCutter(burst.turn, language, tempo)
        for clause in cutter.feed(burst):
            yield clause
    if cutter is not None:
        for clause in cutter.flush():
            yield clause
