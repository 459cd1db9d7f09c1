"""Calibrates in idle time: the language model judges the bundled requests while nobody needs it.

A step is one pass of the model over a few words. It begins only when all models have been quiet for
a while. A user who begins to speak then does not wait for the step: it is over long before there
are words to read.

A calibration belongs to the fingerprint of a model and to a language. For each language a file has
the fields of a `Calibration`, or says that the last word decides just as well. The shipped file
also names the family of each model.
"""

from __future__ import annotations

import logging
import math
import os
import tomllib
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
import msgspec

from voiceloop.calibration.fitting import JudgedSilence, calibrate
from voiceloop.calibration.requests import Requests, bundled_requests
from voiceloop.engines import IN_IDLE_TIME, Engines, Llm, Steps
from voiceloop.errors import first_cause
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Calibration, Past

logger = logging.getLogger(__name__)

METHOD = 2
"""Version of the method of calibration. Files of other versions are ignored."""

Calibrations = dict[str, Calibration | None]
"""Calibration by the language's code; None if the last word decides just as well."""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this user's calibrations."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "voiceloop" / "calibrations"


def recall(fingerprint: str, folder: Path) -> Calibrations:
    """Return the calibrations of a model: those that ship, or else those kept in `folder`.

    A damaged file is ignored, with a warning in the log.
    """
    shipped = _shipped().get(fingerprint)
    return _calibrations(shipped) if shipped else _kept(folder / f"{fingerprint}.toml")


def of_family(family: str) -> Calibrations:
    """Return the shipped calibrations of one model of `family`; empty if none ships. They are a
    good guess for the family's other models."""
    for table in _shipped().values():
        if table["family"] == family:
            return _calibrations(table)
    return {}


def keep(fingerprint: str, name: str, found: Calibrations, folder: Path) -> None:
    """Write the calibrations `found` of the model called `name` to a file in `folder` that is named
    after `fingerprint`. If that fails, log a warning."""
    path = folder / f"{fingerprint}.toml"
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_text(written(found, name), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        logger.warning("the calibration of '%s' is not kept: %s", name, error)
        with suppress(OSError):
            partial.unlink()


def written(found: Calibrations, name: str) -> str:
    """Return the calibrations `found` of the model called `name` as the text of a file, which
    `recall` can read."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    lines = [f"# How the end of a user's turn is told with {shown}.", f"method = {METHOD}"]
    for language, calibration in found.items():
        judge, values = ("probability", asdict(calibration)) if calibration else ("words", {})
        lines += ["", f"[{language}]", f'judge = "{judge}"']
        lines += [f"{field} = {value!r}" for field, value in values.items()]
    return "\n".join(lines) + "\n"


def _shipped() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("shipped.toml").read_text(encoding="utf-8"))


def _kept(path: Path) -> Calibrations:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return _calibrations(table) if table.pop("method") == METHOD else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError) as error:
        logger.warning("%s is not a calibration and is not used: %s", path, error)
        return {}


def _calibrations(table: Mapping[str, Any]) -> Calibrations:
    """Return the calibrations in `table`, a file as read from TOML. Raises ValueError or KeyError
    if a calibration is not valid."""
    languages = {code: own for code, own in table.items() if code != "family"}
    given = msgspec.convert(languages, dict[str, dict[str, Any]])
    return {code: _calibration(own) for code, own in given.items()}


def _calibration(own: Mapping[str, Any]) -> Calibration | None:
    if own["judge"] == "words":
        return None
    found = msgspec.convert(own, Calibration)
    ordered = 0 <= found.incomplete_below <= found.complete_above <= 1
    if not ordered or not 0 <= found.complete_ms <= 1200 or not math.isfinite(found.shift):
        raise ValueError("it is out of range")
    return found


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
                    found = conversation.standing.end_probability
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
        if llm.fingerprint:
            own = {code: one for code, one in llm.calibrations.items() if code not in llm.borrowed}
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
