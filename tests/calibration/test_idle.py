"""Calibration in idle time: it waits until nobody wants anything, and nobody waits for it."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tests.fakes import Script, ScriptMicrophone, Utterance
from tests.support.runner import InlineRunner, Timed
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.calibration.fitting import calibrate
from voiceloop.calibration.idle import QUIET_S, calibrate_in_idle_time, judgements, keep, recall
from voiceloop.calibration.requests import Cut, bundled_requests
from voiceloop.engines import Engines
from voiceloop.session import Session
from voiceloop.settings.config import Config, TurnConfig
from voiceloop.trace.record import Mark
from voiceloop.types import Calibration, Event, TurnTrace

pytestmark = pytest.mark.virtual

ASKED = bundled_requests()
CHANCES = {"end": 0.9, "whole": 0.3, "content word": 0.1, "function word": 0.01}
COST_S = 0.02
"""Of a step of the language model."""


def model() -> ScriptedLlm:
    """One that knows an end from a pause in English and in no other language."""
    chances = {
        cut.words: CHANCES[cut.kind] if language == "en" else 0.5
        for language in ("de", "es", "en")
        for one in ASKED[language].asked
        for cut in one.cuts
    }
    return ScriptedLlm(
        {}, burst_cost=COST_S, end_of_turn=chances, fingerprint="abc", calibrations={}
    )


def cuts_of(language: str) -> list[Cut]:
    return [cut for one in ASKED[language].asked for cut in one.cuts]


def engines(llm: ScriptedLlm, *said: Utterance, total_s: float = 1.0) -> tuple[Engines, Script]:
    script = Script(said, total_s)
    runners = [InlineRunner() for _ in range(3)]
    asr, tts = ScriptedAsr(script), ScriptedTts()
    return Engines(ScriptedVad(), asr, runners[0], llm, runners[1], tts, runners[2]), script


async def test_it_finds_what_the_list_says_and_keeps_it(tmp_path: Path) -> None:
    llm = model()
    await calibrate_in_idle_time(engines(llm)[0], TurnConfig(), tmp_path)
    found = llm.calibrations["en"]
    judged = [step for step in judgements(llm, ASKED["en"]) if not isinstance(step, Timed | None)]
    assert len(judged) == sum(len(one.cuts) for one in ASKED["en"].asked)
    assert found is not None and found == calibrate(judged, TurnConfig())
    assert CHANCES["whole"] < found.complete_above <= CHANCES["end"]
    assert llm.calibrations == {"en": found, "de": None, "es": None}
    assert recall("abc", tmp_path) == llm.calibrations


async def test_what_is_borrowed_is_found_anew_and_never_kept_as_its_own(tmp_path: Path) -> None:
    llm = model()
    lent = Calibration(0.5, 0.1, 88)
    llm.calibrations.update(en=lent, de=lent, es=None)
    llm.borrowed.update({"en", "de"})
    await calibrate_in_idle_time(engines(llm)[0], TurnConfig(), tmp_path)
    assert llm.calibrations["en"] != lent and llm.calibrations["de"] is None
    assert recall("abc", tmp_path) == llm.calibrations and not llm.borrowed

    interrupted = model()
    interrupted.calibrations.update(en=lent, de=lent, es=lent)
    interrupted.borrowed.update({"en", "de", "es"})
    first = next(iter(ASKED))
    interrupted.end_of_turn = dict.fromkeys((cut.words for cut in cuts_of(first)), 0.5)
    await calibrate_in_idle_time(engines(interrupted)[0], TurnConfig(), tmp_path / "other")
    assert set(recall("abc", tmp_path / "other")) == {first}
    assert interrupted.borrowed == set(ASKED) - {first}


async def test_an_engine_that_tells_no_probability_is_asked_no_further(tmp_path: Path) -> None:
    llm = replace(model(), end_of_turn={})
    await calibrate_in_idle_time(engines(llm)[0], TurnConfig(), tmp_path)
    assert not llm.calibrations and not recall("abc", tmp_path)


async def test_it_goes_on_where_it_was_interrupted_by_a_language(tmp_path: Path) -> None:
    keep("abc", "scripted", {"en": None}, tmp_path)
    llm = model()
    llm.calibrations.update(recall("abc", tmp_path))
    await calibrate_in_idle_time(engines(llm)[0], TurnConfig(), tmp_path)
    assert llm.calibrations == {"en": None, "de": None, "es": None}
    assert ("prefill", ASKED["en"].asked[0].cuts[0].words) not in llm.log


def outcome(traces: list[TurnTrace]) -> list[object]:
    return [(trace.marks, trace.counters, trace.heard, trace.outcome) for trace in traces]


@pytest.mark.parametrize("start", [0.3, 3.013])
async def test_no_turn_is_later_for_it(start: float, tmp_path: Path) -> None:
    """Not by a microsecond: the user speaks before it has begun, and in the midst of it."""

    async def converse(*, calibrating: bool) -> tuple[list[TurnTrace], ScriptedLlm]:
        llm = model()
        there, script = engines(llm, Utterance(start, "What is new"), total_s=start + 6)
        shown: list[Event] = []
        config = Config(turns=TurnConfig(endpoint="trailing-words"))
        session = Session(there, ScriptMicrophone(script), NullSpeaker(RATE), config, shown.append)
        begun = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            if calibrating:
                tasks.start_soon(calibrate_in_idle_time, there, TurnConfig(), tmp_path)
            await session.run()
            tasks.cancel_scope.cancel()
        traces = [event for event in shown if isinstance(event, TurnTrace)]
        return [
            replace(trace, marks={name: round(at - begun, 6) for name, at in trace.marks.items()})
            for trace in traces
        ], llm

    alone, _ = await converse(calibrating=False)
    beside, llm = await converse(calibrating=True)
    assert outcome(alone) == outcome(beside)
    assert alone[0].marks[Mark.FIRST_SOUND] > start
    read = [text for what, text in llm.log if what == "prefill"]
    assert ASKED["de"].asked[0].cuts[0].words in read, "it was under way"


@pytest.mark.parametrize(
    ("calibrations", "least", "most"),
    [
        ({}, 500, 620),
        ({"de": Calibration(0.5, 0.1, 88)}, 500, 620),
        ({"en": Calibration(0.5, 0.1, 88)}, 88, 250),
        ({"en": Calibration(0.99, 0.95, 88)}, 1100, 1220),
    ],
)
async def test_a_turn_ends_as_the_calibration_of_its_language_says(
    calibrations: dict[str, Calibration | None], least: int, most: int
) -> None:
    llm = replace(model(), calibrations=calibrations, end_of_turn={"what is new": 0.9})
    there, script = engines(llm, Utterance(0.5, "What is new"), total_s=5)
    shown: list[Event] = []
    session = Session(
        there, ScriptMicrophone(script), NullSpeaker(RATE), Config(), shown.append, full_duplex=True
    )
    await session.run()
    (trace,) = [event for event in shown if isinstance(event, TurnTrace)]
    waited = (trace.marks[Mark.ENDPOINT] - trace.marks[Mark.SPEECH_END]) * 1000
    assert least <= waited <= most
    asked = [span for span in trace.spans if span.name == "end of turn?"]
    assert bool(asked) is (calibrations.get("en") is not None)


async def test_it_begins_when_it_has_been_quiet_and_stops_for_whoever_wants_something(
    tmp_path: Path,
) -> None:
    llm = model()
    there, _ = engines(llm)
    read: list[float] = []

    def step() -> Timed[None]:
        read.append(len(llm.log))
        return Timed(None, 0.1)

    async def wanted() -> None:
        for _ in range(20):
            before = anyio.current_time()
            await there.asr_runner.call(step)
            assert anyio.current_time() - before == pytest.approx(0.1)
            await anyio.sleep(QUIET_S / 2)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calibrate_in_idle_time, there, TurnConfig(), tmp_path)
        await anyio.sleep(1)
        assert llm.log, "nobody has wanted anything yet"
        await wanted()
        tasks.cancel_scope.cancel()
    assert read[1:] == [read[1]] * 19, "a step at most was under way"
    assert llm.log[-1] == ("close", None)


async def test_a_failure_ends_the_calibration_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(ScriptedLlm):
        def conversation(self, *, system: str | None = None, seed: int = 0) -> object:
            raise RuntimeError("broken")

    with caplog.at_level(logging.ERROR):
        await calibrate_in_idle_time(
            engines(Broken({}, calibrations={}))[0], TurnConfig(), tmp_path
        )
    assert "could not be calibrated" in caplog.text and "broken" in caplog.text
