"""A reply by itself, without a session around it."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from tests.fakes import Script
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.audio.devices import NullSpeaker
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.audio.player import Player
from voiceloop.dialogue.actions import StartReply
from voiceloop.dialogue.state import Options
from voiceloop.engines import Engines
from voiceloop.trace.record import Lane, Mark, Recorder
from voiceloop.turn.reply import HEAD_START_S, Reply
from voiceloop.turn.resources import Resources
from voiceloop.turn.speech import Gate, Voiced

pytestmark = pytest.mark.virtual


def ignore(event: object) -> None:
    """Do nothing with a report, an event or a clause."""


@pytest.mark.parametrize("rounds", range(6))
async def test_a_guess_that_is_dropped_at_any_moment_ends_without_an_error(rounds: int) -> None:
    llm = ScriptedLlm({"hello": ("Hello ", "there. ")})
    heard, run = ScriptedAsr(Script((), 1.0)), InlineRunner
    engines = Engines(ScriptedVad(), heard, run(), llm, run(), ScriptedTts(), run())
    player, gate = Player(NullSpeaker(RATE)), Gate(urgent=True)
    conversation = llm.conversation()
    resources = Resources(engines, conversation, player, ignore, ignore)
    reply = Reply(StartReply(1, "hello", Options()), Recorder(1), resources, gate)
    reply.begin()

    async def drop() -> None:
        for _ in range(rounds):
            await anyio.lowlevel.checkpoint()
        gate.scope.cancel()

    async with anyio.create_task_group() as tasks:
        if rounds:
            tasks.start_soon(drop)
        else:
            gate.scope.cancel()
        await reply.run(Voiced())
    assert gate.scope.cancelled_caught


@pytest.mark.parametrize(
    ("cost", "lead", "idle"),
    [(0.1, False, 0.1), (1.0, False, HEAD_START_S), (1.0, True, 0.0)],
    ids=["until it sounds", "not for long", "not for a voice that needs a lead"],
)
async def test_the_voice_has_a_head_start(cost: float, lead: bool, idle: float) -> None:
    llm = ScriptedLlm({"hello": tuple(f"Sentence {n}. " for n in range(9))}, burst_cost=0.01)
    heard, run = ScriptedAsr(Script((), 1.0)), InlineRunner
    voice = ScriptedTts(cost=cost, word_samples=RATE)
    engines = Engines(ScriptedVad(), heard, run(), llm, run(), voice, run())
    player, gate, recorder = Player(NullSpeaker(RATE)), Gate(urgent=True), Recorder(1)
    conversation = llm.conversation()
    resources = Resources(engines, conversation, player, ignore, ignore)
    if lead:
        resources.pace.observe(1.0, 2.0)
    reply = Reply(StartReply(1, "hello", Options()), recorder, resources, gate)
    reply.begin()
    reply.commit()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(player.run, ignore)
        await reply.run(Voiced())
        tasks.cancel_scope.cancel()
    trace = recorder.trace("done")
    cut = trace.marks[Mark.FIRST_CLAUSE]
    rounds = [span.end for span in trace.spans if span.lane is Lane.DECODE and span.end > cut]
    assert rounds[0] - cut == pytest.approx(idle + llm.burst_cost)
    assert trace.marks[Mark.FIRST_SYNTHESIS] - cut == pytest.approx(cost)
