"""Calibration in idle time: the language model judges the bundled requests while nobody needs it.

A step is one pass of the model over a few words. It begins only when all models have been quiet for
a while. A user who begins to speak then does not wait for the step: it is over long before there
are words to read.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from pathlib import Path

import anyio

from voiceloop.calibration.fitting import JudgedSilence, calibrate
from voiceloop.calibration.keeping import keep
from voiceloop.calibration.requests import Requests, bundled_requests
from voiceloop.config import TurnConfig
from voiceloop.engines import IN_IDLE_TIME, Engines, Llm, Steps
from voiceloop.errors import first_cause
from voiceloop.types import Past

logger = logging.getLogger(__name__)

QUIET_S = 2.0
"""Idle time begins when no model has had work for this many seconds."""
SHORTEST_S = 0.001
"""Shortest wait in seconds. A much shorter one could be lost to rounding, and the clock would never
advance."""


def judgements(llm: Llm, requests: Requests) -> Steps[JudgedSilence]:
    """Yield the model's judgement of each silence in the requests, one in each step.

    Yield nothing if the model gives no probability. Requests with an even index are the first ones
    of their conversation. The others follow the history in `requests`.
    """
    conversation = llm.conversation()
    first, later = requests.asked[::2], requests.asked[1::2]
    try:
        for group, history in ((first, ()), (later, requests.history)):
            conversation.rewrite(llm.system, [Past(said, (reply,)) for said, reply in history])
            for turn, request in enumerate(group):
                for cut in request.cuts:
                    yield from conversation.prefill(cut.words, turn)
                    found = conversation.end_of_turn_probability()
                    if found is not None:
                        yield JudgedSilence(
                            cut.words, cut.kind, found, cut.unfinished, len(history)
                        )
    finally:
        conversation.close()


async def calibrate_in_idle_time(engines: Engines, turns: TurnConfig, folder: Path) -> None:
    """Calibrate the language model's end probabilities for the silences of `turns`, and keep the
    calibrations in `folder`.

    Languages that have a calibration are left out, unless it is borrowed (`Llm.borrowed`). An error
    is logged and ends only the calibration.
    """
    try:
        await _calibrate(engines, turns, folder)
    except Exception as error:
        # Only the calibration ends. Conversations go on, and the last word still decides.
        cause = first_cause(error)
        logger.error("the end of turn could not be calibrated", exc_info=cause)


async def _calibrate(engines: Engines, turns: TurnConfig, folder: Path) -> None:
    llm = engines.llm
    for language, requests in bundled_requests().items():
        if language in llm.calibrations and language not in llm.borrowed:
            continue
        judged = await _judged(engines, requests)
        if not judged:
            return  # the engine gives no probabilities
        llm.calibrations[language] = calibrate(judged, turns)
        llm.borrowed.discard(language)
        own = {
            code: llm.calibrations[code] for code in llm.calibrations if code not in llm.borrowed
        }
        if llm.fingerprint:
            keep(llm.fingerprint, llm.name, own, folder)
        logger.info("calibrated the end of turn of '%s' in '%s'", llm.name, language)


async def _judged(engines: Engines, requests: Requests) -> list[JudgedSilence]:
    found = list[JudgedSilence]()
    steps = engines.llm_runner.stream(judgements(engines.llm, requests), priority=IN_IDLE_TIME)
    async with aclosing(steps):
        while True:
            await quiet(engines)
            one = await anext(steps, None)
            if one is None:
                return found
            found.append(one)


async def quiet(engines: Engines) -> None:
    """Wait until no model has had work for `QUIET_S`."""
    # No event tells that the models have been quiet for that long, so this sleeps and looks again.
    while (left := QUIET_S - min(one.quiet_s() for one in engines.runners)) > 0:  # noqa: ASYNC110
        await anyio.sleep(max(left, SHORTEST_S))
