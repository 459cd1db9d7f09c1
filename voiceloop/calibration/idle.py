"""Calibration in idle time: what the language model makes of the bundled requests, while nobody
wants anything of it.

A step is one pass of the model over a few words, and none begins before all models have been quiet
for a while, so a user who begins to speak has to wait for none: until there are words to read, the
step that runs has long been over.
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
from voiceloop.types import Past

logger = logging.getLogger(__name__)

QUIET_S = 2.0
"""Nobody has wanted anything for so long: it is idle time."""


def judgements(llm: Llm, requests: Requests) -> Steps[JudgedSilence]:
    """What the model makes of each silence in the requests, one a step; nothing where it does not
    tell how likely an end is.

    Every other request begins its conversation, and the others follow the list's history.
    """
    conversation = llm.conversation()
    first, later = requests.asked[::2], requests.asked[1::2]
    try:
        for asked, history in ((first, ()), (later, requests.history)):
            conversation.rewrite(llm.system, [Past(said, (reply,)) for said, reply in history])
            for turn, request in enumerate(asked):
                for cut in request.cuts:
                    yield from conversation.prefill(cut.words, turn)
                    found = conversation.end_of_turn_probability()
                    if found is not None:
                        yield JudgedSilence(
                            cut.words, cut.kind, found, cut.unfinished, len(history)
                        )
    finally:
        conversation.close()


async def calibrate_in_idle_time(engines: Engines, folder: Path) -> None:
    """Find out what the model's P(end of turn) means in each language of which that is not known
    of this very model, and keep it in `folder`."""
    try:
        await _calibrate(engines, folder)
    except Exception as error:
        # It ends with its failure; who converses goes on, and the words go on deciding.
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        logger.error("the end of turn could not be calibrated", exc_info=error)


async def _calibrate(engines: Engines, folder: Path) -> None:
    llm = engines.llm
    for language, asked in bundled_requests().items():
        if language in llm.calibrations and language not in llm.borrowed:
            continue
        judged = await _judged(engines, asked)
        if not judged:
            return  # the engine knows no probabilities
        llm.calibrations[language] = calibrate(judged, TurnConfig())
        llm.borrowed.discard(language)
        own = {
            code: llm.calibrations[code] for code in llm.calibrations if code not in llm.borrowed
        }
        keep(llm.fingerprint, llm.name, own, folder)
        logger.info("calibrated the end of turn of '%s' in '%s'", llm.name, language)


async def _judged(engines: Engines, asked: Requests) -> list[JudgedSilence]:
    found = list[JudgedSilence]()
    steps = engines.llm_runner.stream(judgements(engines.llm, asked), priority=IN_IDLE_TIME)
    async with aclosing(steps):
        while True:
            await _quiet(engines)
            one = await anext(steps, None)
            if one is None:
                return found
            found.append(one)


async def _quiet(engines: Engines) -> None:
    """Wait until nobody has wanted anything of any model for a while."""
    # Nothing happens when it has been quiet for long: there is no event to wait for.
    while (left := QUIET_S - min(one.quiet_s() for one in engines.runners)) > 0:  # noqa: ASYNC110
        await anyio.sleep(left)
