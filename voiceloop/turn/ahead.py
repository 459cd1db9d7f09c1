"""Work for the next turn, done before that turn begins.

`look_ahead` begins replies to what the user may say next, while all models are idle. `catch_up` has
the language model read the history while a recited reply sounds. A recited reply is one that the
model did not generate, e.g. the answer of a skill.
"""

from __future__ import annotations

import logging
from contextlib import aclosing

import anyio

from voiceloop.engines import IN_IDLE_TIME, Engines
from voiceloop.errors import VoiceloopError
from voiceloop.trace.record import Lane, Recorder
from voiceloop.turn.resources import Resources

logger = logging.getLogger(__name__)

LOOK_S = 0.01
"""Seconds between two checks whether all models are idle."""


async def look_ahead(resources: Resources, recorder: Recorder, text: str, turn: int) -> None:
    """Begin replies to what the user may say in `turn`, if their words begin with `text`. Nothing
    is done if the engine begins nothing ahead.

    No step begins while any model has other work. A failure is only logged, because nobody waits
    for the result.
    """
    steps = resources.conversation.ahead(text, turn)
    if steps is None:
        return
    engines, known = resources.engines, 0
    try:
        async with aclosing(engines.llm_runner.stream(steps, priority=IN_IDLE_TIME)) as found:
            while True:
                await _slack(engines)
                if (tokens := await anext(found, None)) is None:
                    break
                recorder.count("tokens_ahead", tokens - known)
                known = tokens
    except VoiceloopError as error:
        logger.warning("nothing is begun ahead: %s", error.message)


async def catch_up(resources: Resources, recorder: Recorder) -> None:
    """Have the model read the history up to the end of a recited reply, while that reply sounds.

    A failure is only logged, because the next turn will report it.
    """
    begun = anyio.current_time()
    steps = resources.conversation.catch_up()
    stream = resources.engines.llm_runner.stream(steps, priority=IN_IDLE_TIME)
    try:
        async with aclosing(stream) as chunks:
            async for _ in chunks:
                pass
    except VoiceloopError as error:
        logger.warning("the history is not read ahead: %s", error.message)
    recorder.span(Lane.PREFILL, "catch up", begun, anyio.current_time())


async def _slack(engines: Engines) -> None:
    """Wait until no model has other work."""
    # There is no event for the moment at which the last model becomes idle.
    while not all(one.quiet_s() for one in engines.runners):  # noqa: ASYNC110
        await anyio.sleep(LOOK_S)
