"""Rules on the wire: for the assistant that is ours, and not for one that a client makes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random
from typing import Any

import anyio
import pytest

from tests.fakes import Script
from tests.server.session.test_calls import LOOK, RATE, Client
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.engines import Engines
from voiceloop.llm.text.messages import OWN_CALL, told
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.history import history
from voiceloop.settings.config import Config, LlmConfig
from voiceloop.tools.declared import tool
from voiceloop.tools.results import DATA_ONLY, IF_ASKED
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.types import ToolCall
from voiceloop.wire.items import FunctionCall, maker

pytestmark = pytest.mark.virtual

BEGAN = datetime(2026, 11, 26, 15, 42)
SYSTEM = "Be nice."
PLACE = "Lisbon, Portugal"


def dialogue(
    toolbox: Toolbox = NO_TOOLS, calls: Sequence[ToolCall] = (ToolCall(1, "c1", "open_door", {}),)
) -> tuple[ClientConversation, ScriptedLlm]:
    llm, runner = (
        ScriptedLlm(
            {"Open the door": calls, "Yes": calls},
            default=("I am a model.",),
            results={"open_door": ("Well.",)},
            system=SYSTEM,
        ),
        InlineRunner,
    )
    tts = ScriptedTts(rate=RATE)
    ears = ScriptedAsr(Script([], 1.0))
    engines = Engines(ScriptedVad(), ears, runner(), llm, runner(), tts, runner())
    config = Config(place=PLACE, llm=LlmConfig(target="other"))
    conversation, new_id = llm.conversation(), maker(Random(0))
    return ClientConversation(engines, config, conversation, new_id, BEGAN, toolbox), llm


@asynccontextmanager
async def client(own: ClientConversation, **session: Any) -> AsyncGenerator[Client, None]:
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


async def test_what_a_rule_did_is_two_items_and_the_models_history_has_no_words_of_it() -> None:
    own, _ = dialogue()
    async with client(own) as one:
        assert text(await ask(one, "Set a timer for 5 minutes.")).startswith("Your timer is set")
        kinds = [type(item).__name__ for item in own.ledger.items]
        assert kinds == ["Message", "FunctionCall", "FunctionCallOutput", "Message"]
        _, past = history("", own.ledger.items, ())
        (done,) = past[0].replied
        assert not isinstance(done, str)
        call, result = done
        assert call.name == f"{OWN_CALL}timers" and "the timer of 5 minutes" in result


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
        assert text(await ask(one, "Are you hungry?")) == "I am a model."


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


@pytest.mark.parametrize(
    ("session", "opened"),
    [({}, 1), ({"instructions": "Be a pirate."}, 0), ({"tools": [LOOK]}, 0)],
)
async def test_the_servers_own_tools_are_for_its_own_assistant_alone(
    session: dict[str, Any], opened: int
) -> None:
    doors = list[str]()

    @tool
    async def open_door() -> None:
        """Open the door."""
        doors.append("open")

    own, _ = dialogue(Toolbox([open_door]))
    told, tools, *_ = own.seen(own.settings)
    assert [one.name for one in tools] == ["open_door"] and told.endswith(IF_ASKED)
    async with client(own, **session) as one:
        assert text(await ask(one, "Open the door")) == "Well."
        told, tools, *_ = own.seen(own.settings)
        assert (
            (open_door.name in [one.name for one in tools]) == (DATA_ONLY in told) == bool(opened)
        )
    assert len(doors) == opened


async def test_a_call_that_waits_for_a_yes_is_shown_and_a_yes_lets_it_run() -> None:
    opened = list[str]()

    @tool(confirm=True)
    async def open_door(door: str) -> str:
        """Open a door."""
        opened.append(door)
        return "it is open"

    front = ToolCall(1, "c1", "open_door", {"door": "front"})
    own, _ = dialogue(Toolbox([open_door]), calls=(front,))
    async with client(own) as one:
        asked = text(await ask(one, "Open the door"))
        assert asked == "Shall I do this? open door, door: front."
        waits = [item for item in own.ledger.items if isinstance(item, FunctionCall)]
        assert [(item.name, item.arguments) for item in waits] == [
            ("open_door", '{"door": "front"}')
        ]
        assert opened == []
        await ask(one, "Yes")
    assert opened == ["front"]
