"""What is begun ahead waits for whoever wants a model, and fails nobody."""

from __future__ import annotations

from functools import partial

import anyio
import pytest

from tests.fakes import Script
from tests.support.runner import InlineRunner, Timed
from tests.support.scripted import (
    AHEAD,
    ScriptedAsr,
    ScriptedConversation,
    ScriptedLlm,
    ScriptedTts,
    ScriptedVad,
)
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.audio.player import Player
from voiceloop.engines import Engines, Steps
from voiceloop.errors import OutOfMemory
from voiceloop.trace.record import Recorder
from voiceloop.turn.ahead import look_ahead
from voiceloop.turn.resources import Resources

pytestmark = pytest.mark.virtual

STEP_S = 0.01


def resources(llm: ScriptedLlm, conversation: ScriptedConversation) -> Resources:
    run, hearing = InlineRunner, ScriptedAsr(Script((), 1.0))
    engines = Engines(ScriptedVad(), hearing, run(), llm, run(), ScriptedTts(), run())
    player = Player(NullSpeaker(RATE))
    return Resources(engines, conversation, player, lambda report: None, lambda event: None)


def begun(recorder: Recorder) -> float:
    return recorder.trace("done").counters.get("tokens_ahead", 0)


async def test_no_step_begins_while_another_model_has_something_to_do() -> None:
    llm = ScriptedLlm({}, ahead_cost=STEP_S)
    held, recorder = resources(llm, llm.conversation()), Recorder(1)
    async with anyio.create_task_group() as tasks:
        for runner in (held.engines.asr_runner, held.engines.tts_runner):
            tasks.start_soon(partial(runner.call, partial(Timed, None, 1.0)))
        await anyio.sleep(0.001)
        tasks.start_soon(look_ahead, held, recorder, "", 1)
        await anyio.sleep(0.9)
        assert begun(recorder) == 0
        await anyio.sleep(1.0)
    assert begun(recorder) == AHEAD


async def test_where_it_fails_the_turn_goes_on() -> None:
    llm = ScriptedLlm({})

    class Full(ScriptedConversation):
        def ahead(self, text: str, turn: int) -> Steps[int]:
            raise_ = partial(self._full, text, turn)
            return (raise_() for _ in range(1))

        def _full(self, text: str, turn: int) -> int:
            raise OutOfMemory(f"no room for {text}{turn}", "set llm.context lower")

    recorder = Recorder(1)
    await look_ahead(resources(llm, Full(llm)), recorder, "", 1)
    assert begun(recorder) == 0
