"""A reply by itself, without a session around it."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from tests.fakes import Script
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.audio.player import Player
from voiceloop.dialogue.actions import StartReply
from voiceloop.dialogue.state import Options
from voiceloop.engines import Engines
from voiceloop.replay.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.runner import InlineRunner
from voiceloop.trace.record import Recorder
from voiceloop.turn.gate import Gate
from voiceloop.turn.reply import Reply
from voiceloop.turn.resources import Resources
from voiceloop.turn.speech import Voiced

pytestmark = pytest.mark.virtual


@pytest.mark.parametrize("rounds", range(6))
async def test_a_guess_that_is_dropped_at_any_moment_ends_without_an_error(rounds: int) -> None:
    llm = ScriptedLlm({"hello": ("Hello ", "there. ")})
    heard, run = ScriptedAsr(Script((), 1.0)), InlineRunner
    engines = Engines(ScriptedVad(), heard, run(), llm, run(), ScriptedTts(), run())
    player, gate = Player(NullSpeaker(RATE)), Gate(urgent=True)
    resources = Resources(engines, llm.conversation(), player, lambda event: None)
    reply = Reply(StartReply(1, "hello", Options()), Recorder(1), resources, gate)
    reply.begin()

    async def drop() -> None:
        for _ in range(rounds):
            await anyio.lowlevel.checkpoint()
        gate.drop()

    async with anyio.create_task_group() as tasks:
        if rounds:
            tasks.start_soon(drop)
        else:
            gate.drop()
        async with reply.run(Voiced()) as thought:
            async for _ in thought:
                pass
    assert gate.scope.cancelled_caught
