"""Rules on the wire: for the assistant that is ours, and not for one that a client makes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random
from typing import Any

import anyio
import pytest

from tests.fakes import Script
from tests.server.test_calls import LOOK, RATE, Client
from voiceloop.config import Config
from voiceloop.engines import Engines
from voiceloop.llm.text.wording import told
from voiceloop.replay.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.runner import InlineRunner
from voiceloop.server.dialogue import Dialogue
from voiceloop.wire.ids import maker

pytestmark = pytest.mark.virtual

BEGAN = datetime(2026, 11, 26, 15, 42)
SYSTEM = "Be nice."
PLACE = "Lisbon, Portugal"


def dialogue() -> tuple[Dialogue, ScriptedLlm]:
    llm, runner = ScriptedLlm({}, default=("I am a model.",), system=SYSTEM), InlineRunner
    tts = ScriptedTts(rate=RATE)
    ears = ScriptedAsr(Script([], 1.0))
    engines = Engines(ScriptedVad(), ears, runner(), llm, runner(), tts, runner())
    config = Config(place=PLACE)
    return Dialogue(engines, config, llm.conversation(), maker(Random(0)), BEGAN), llm


@asynccontextmanager
async def client(own: Dialogue, **session: Any) -> AsyncGenerator[Client, None]:
    one = Client(own)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.visit.run)
        await anyio.sleep(0.1)
        if session:
            one.send("session.update", session={"type": "realtime", **session})
        yield one
        tasks.cancel_scope.cancel()


def text(response: dict[str, Any]) -> str:
    parts = [part for item in response["output"] for part in item.get("content", [])]
    return "".join(part.get("transcript") or part.get("text") or "" for part in parts)


async def ask(one: Client, words: str) -> dict[str, Any]:
    one.write(words)
    return await one.respond()


async def test_our_assistant_answers_by_rule_and_repeats_itself() -> None:
    own, llm = dialogue()
    async with client(own) as one:
        assert text(await ask(one, "What is 17 times 23?")) == "17 times 23 is 391."
        assert text(await ask(one, "Say that again.")) == "17 times 23 is 391."
        assert text(await ask(one, "Who are you?")) == "I am a model."
    assert [told for name, told in llm.log if name == "reply"] == ["Who are you?"]


@pytest.mark.parametrize("session", [{"instructions": "Be a pirate."}, {"tools": [LOOK]}])
async def test_an_assistant_of_the_clients_is_left_alone(session: dict[str, Any]) -> None:
    own, llm = dialogue()
    async with client(own, **session) as one:
        assert text(await ask(one, "What is 17 times 23?")) == "I am a model."
        (rewrite,) = [what for name, what in llm.log if name == "rewrite"]
        assert rewrite == (session.get("instructions", SYSTEM), ())
        one.send(
            "session.update", session={"type": "realtime", "instructions": SYSTEM, "tools": []}
        )
        assert text(await ask(one, "What is 2 plus 2?")) == "2 plus 2 is 4."
    system = [what for name, what in llm.log if name == "rewrite"][-1]
    assert isinstance(system, tuple) and system[0] == told(SYSTEM, BEGAN, PLACE)


async def test_stop_is_a_response_in_which_nothing_is_said_and_goodbye_ends_nothing() -> None:
    own, _ = dialogue()
    async with client(own) as one:
        stopped = await ask(one, "Stop.")
        assert stopped["status"] == "completed" and not text(stopped)
        assert text(await ask(one, "Goodbye.")) == "Goodbye! Take care."
        assert text(await ask(one, "Are you there?")) == "I am a model."


async def test_a_timer_rings_though_its_client_was_away() -> None:
    own, _ = dialogue()
    async with client(own) as one:
        await ask(one, "Set a timer for one minute.")
    await anyio.sleep(90)
    async with client(own) as one:
        await anyio.sleep(5)
        (done,) = [event for event in one.told.events if event["type"] == "response.done"]
        assert text(done["response"]) == "The timer of 1 minute is over."
        assert text(await ask(one, "What did I just ask?")).endswith("Set a timer for one minute.")
