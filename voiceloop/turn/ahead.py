"""Looking ahead: replies to what the user may say next, begun while nothing else is to be done."""

from __future__ import annotations

import logging
from contextlib import aclosing

import anyio

from voiceloop.engines import Engines, idle
from voiceloop.errors import VoiceloopError
from voiceloop.trace.record import Recorder
from voiceloop.turn.resources import Resources

logger = logging.getLogger(__name__)

LOOK_S = 0.01
"""So often it is looked whether all models are idle."""


async def look_ahead(resources: Resources, recorder: Recorder, text: str, turn: int) -> None:
    """Have replies begun to what the user may say in the turn of that number, of which `text` is
    there. No step of that begins while any model has anything else to do.

    Where it fails, nothing has been begun: nobody waits for it.
    """
    steps = resources.conversation.ahead(text, turn)
    if steps is None:
        return
    engines, known = resources.engines, 0
    try:
        async with aclosing(engines.llm_runner.stream(steps, priority=idle)) as counts:
            while True:
                await _slack(engines)
                tokens = await anext(counts, None)
                if tokens is None:
                    break
                if tokens > known:
                    recorder.count("tokens_ahead", tokens - known)
                    known = tokens
    except VoiceloopError as error:
        logger.warning("nothing is begun ahead: %s", error.message)


async def _slack(engines: Engines) -> None:
    """Wait until no model has anything to do."""
    # Nothing happens when the last of them has finished: there is no event to wait for.
    while not all(one.quiet_s() for one in engines.runners):  # noqa: ASYNC110
        await anyio.sleep(LOOK_S)
