"""Plays a scenario: a real session runs on a virtual clock, and everything around it is scripted.

This module does not know the rules of a conversation. Events and traces, each with its time, show
what the session does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import anyio

from tests.support.clock import LateRunner, LateSpeaker, VirtualClock
from tests.support.scenario import Failure, Scenario
from tests.support.scripted import (
    ScriptedAsr,
    ScriptedFailure,
    ScriptedLlm,
    ScriptedTts,
    ScriptedTurnModel,
    ScriptedVad,
)
from tests.support.user import Lexicon, ScriptedMicrophone, TimedSound
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.engines import Engines
from voiceloop.errors import first_cause
from voiceloop.replay.recorded import ReplayResult, in_order
from voiceloop.session import Session
from voiceloop.turn.resources import OVERLAPS
from voiceloop.types import Event, TurnTrace

WALL_CLOCK = datetime(2026, 1, 5, 14, 5)
"""Date and time of day in a scenario."""


@dataclass(frozen=True, slots=True)
class PlayedScenario(ReplayResult):
    """The result of a scenario. Times are seconds since it began."""

    said: tuple[tuple[float, TimedSound], ...]
    """The user's sounds, each with the time at which it began."""
    problem: str = ""
    """Why the conversation did not come to its end; empty if it did."""


def scripted_engines(scenario: Scenario, lexicon: Lexicon, clock: VirtualClock) -> Engines:
    """Return engines that follow the script of `scenario`, with runners on `clock`."""
    stages = scenario.stages
    table, default, results = scenario.replies()
    asr = ScriptedAsr(
        lexicon,
        cost=stages.asr_partial_s,
        final_cost=stages.asr_final_s,
        max_window_s=stages.asr_window_s,
        fail=_fails(scenario, "asr"),
    )
    llm = ScriptedLlm(
        table,
        burst_cost=stages.llm_burst_s,
        prefill_cost=stages.llm_prefill_s,
        unread_cost=stages.llm_prefill_s,
        results=results,
        end_of_turn=scenario.end_of_turn,
        default=default,
        fail=_fails(scenario, "llm"),
    )
    fails = _fails(scenario, "tts")
    tts = ScriptedTts(
        cost=stages.tts_first_s,
        step_cost=stages.tts_step_s,
        word_samples=round(stages.tts_word_s * SPEECH_RATE),
        chunk_words=stages.tts_chunk_words,
        fail=lambda clause: fails(clause.text),
    )
    runners = [LateRunner(clock, rank) for rank in (1, 2, 3, 5)]
    engines = Engines(ScriptedVad(), asr, runners[0], llm, runners[1], tts, runners[2])
    if not scenario.end_by_sound:
        return engines
    turn_model = ScriptedTurnModel(lexicon, scenario.end_by_sound, stages.sound_s)
    return replace(engines, turn=turn_model, turn_runner=runners[3])


def _fails(scenario: Scenario, stage: str) -> Callable[[str], bool]:
    planned: list[Failure] = [failure for failure in scenario.fail if failure.stage == stage]
    return lambda text: any(failure.on in text for failure in planned)


def play(
    scenario: Scenario,
    *,
    seed: int = 0,
    engines: Callable[[Scenario, Lexicon, VirtualClock], Engines] = scripted_engines,
) -> PlayedScenario:
    """Play `scenario` to its end. `seed` shuffles the tasks that are ready at the same moment; the
    result should not depend on it."""
    clock, lexicon = VirtualClock(seed), Lexicon()
    microphone = ScriptedMicrophone(
        [sound.say() for sound in scenario.user],
        lexicon,
        partial(clock.wait, rank=0),
        silence_s=scenario.silence_s,
        patience_s=scenario.patience_s,
    )
    shown: list[tuple[float, Event]] = []

    def show(event: Event) -> None:
        event = in_order(event) if isinstance(event, TurnTrace) else event
        shown.append((anyio.current_time(), event))
        microphone.notice(event)

    async def converse() -> str:
        session = Session(
            engines(scenario, lexicon, clock),
            microphone,
            LateSpeaker(SPEECH_RATE, clock, rank=4),
            scenario.config,
            show,
            full_duplex=scenario.full_duplex,
            overlap=OVERLAPS[scenario.overlap],
            wall_clock=lambda: WALL_CLOCK,
        )
        with anyio.move_on_after(scenario.limit_s) as limit:
            await session.run()
        if limit.cancelled_caught:
            return f"the conversation is not over after limit_s, {scenario.limit_s:g} s"
        return microphone.problem

    with quietly():
        problem = clock.run(converse)
    return PlayedScenario(tuple(shown), tuple(microphone.begun), problem)


@contextmanager
def quietly() -> Generator[None, None, None]:
    """Keep the session from logging tracebacks of scripted failures while the context lasts."""

    def unplanned(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not (
            isinstance(error, Exception) and isinstance(first_cause(error), ScriptedFailure)
        )

    log = logging.getLogger(Session.__module__)
    log.addFilter(unplanned)
    try:
        yield
    finally:
        log.removeFilter(unplanned)
