"""What a client asks of a dialogue over scripted engines: functions, several in one reply, and a
language."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random
from typing import Any

import anyio
import pytest

from tests.fakes import Script
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.audio.frames import SPEECH_RATE as RATE
from voiceloop.engines import Engines, Llm
from voiceloop.errors import ProtocolError
from voiceloop.languages import AUTO, language
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.client_session import ClientSession, Host
from voiceloop.settings.config import AsrConfig, Config
from voiceloop.types import ToolCall
from voiceloop.wire.items import maker
from voiceloop.wire.parsing import parse
from voiceloop.wire.server_events import Error, ServerEvent

pytestmark = pytest.mark.virtual

REPLIES = {
    "Both": (
        ToolCall(1, "a", "look", {"where": "up"}),
        ToolCall(1, "b", "look", {"where": "down"}),
    ),
    "All": (
        ToolCall(1, "a", "look", {"where": "up"}),
        ToolCall(1, "b", "set_timer", {"minutes": 5}),
        ToolCall(1, "c", "look", {"where": "down"}),
    ),
    "Hello": ("Hello.",),
    "Smile": ("😀",),
    "Hush": (),
    "Capital": ("Lisbon.",),
    "Sum": ("Fifty-six.",),
    "Long": ("One two three four five six. ",) * 5,
    "Mixed": ("Let me look. ", ToolCall(1, "m", "look", {"where": "up"})),
    "Wait": (ToolCall(1, "w", "look", {}), "I am looking. ", "It takes. ", "Some more time."),
}
LOOK = {"type": "function", "name": "look", "description": "", "parameters": {}}


class Told:
    """Keeps what the client is told."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def put(self, event: ServerEvent) -> None:
        self.events.append(json.loads(event.to_json("event")))

    def flush(self, item_id: str) -> int:
        return 0

    def refuse(self, error: ProtocolError, event_id: str | None) -> None:
        self.put(Error.of(error, event_id))


class NoHost(Host):
    """A host that takes note of nothing."""


class Client:
    """Says what it wants."""

    def __init__(self, dialogue: ClientConversation) -> None:
        self.dialogue, self.told = dialogue, Told()
        self.visit = ClientSession(dialogue, self.told, NoHost())

    def send(self, kind: str, **fields: object) -> None:
        self.visit.handle(parse(json.dumps({"type": kind, **fields})))

    def create(self, **item: object) -> None:
        self.send("conversation.item.create", item=item)

    def write(self, text: str) -> None:
        self.create(type="message", role="user", content=[{"type": "input_text", "text": text}])

    def returned(self, call: dict[str, Any], output: str) -> None:
        self.create(type="function_call_output", call_id=call["call_id"], output=output)

    async def respond(self, **response: object) -> dict[str, Any]:
        """Ask for a response, and wait for all of it, or for the error in its place."""
        since = len(self.told.events)
        self.send("response.create", **({"response": response} if response else {}))
        while True:
            await anyio.sleep(0.1)
            for event in self.told.events[since:]:
                if event["type"] in ("response.done", "error"):
                    return event.get("response") or event["error"]


@asynccontextmanager
async def client(spoken: str = "en") -> AsyncGenerator[tuple[Client, ScriptedLlm], None]:
    llm = ScriptedLlm(REPLIES, results={"b": ("One thing.",), "c": ("Two things.",)})
    async with client_of(llm, spoken) as one:
        yield one, llm


@asynccontextmanager
async def client_of(llm: Llm, spoken: str = "en") -> AsyncGenerator[Client, None]:
    script = Script([], 1.0)
    runner = InlineRunner
    engines = Engines(
        ScriptedVad(),
        ScriptedAsr(script),
        runner(),
        llm,
        runner(),
        ScriptedTts(rate=RATE),
        runner(),
    )
    config = Config(asr=AsrConfig(language=spoken))
    began = datetime(2026, 1, 5, 14, 5)
    dialogue = ClientConversation(engines, config, llm.conversation(), maker(Random(0)), began)
    one = Client(dialogue)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.visit.run)
        await anyio.sleep(0.1)
        settings = {"type": "realtime", "tools": [LOOK], "output_modalities": ["text"]}
        one.send("session.update", session=settings)
        yield one
        tasks.cancel_scope.cancel()


def results(llm: ScriptedLlm) -> Sequence[object]:
    return [text for name, text in llm.log if name == "tool_result"]


def calls(response: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in response["output"] if item["type"] == "function_call"]


def text(response: dict[str, Any]) -> str:
    (message,) = [item for item in response["output"] if item["type"] == "message"]
    return message["content"][0]["text"]


async def test_one_response_goes_on_with_the_results_of_all_calls_in_their_order() -> None:
    async with client() as (one, llm):
        one.write("Both")
        up, down = calls(await one.respond())
        one.returned(down, "grass")
        one.returned(up, "sky")
        assert text(await one.respond()) == "One thing."
        assert results(llm) == ["sky", "grass"]


async def test_calls_and_what_they_returned_stay_when_the_history_is_rewritten() -> None:
    async with client() as (one, llm):
        one.write("Both")
        up, down = calls(await one.respond())
        one.returned(down, "grass")
        one.returned(up, "sky")
        assert text(await one.respond()) == "One thing."
        one.send("session.update", session={"instructions": "Be brief."})
        one.write("Hello")
        assert text(await one.respond()) == "Hello."
        (_, past) = [what for name, what in llm.log if name == "rewrite"][-1]  # type: ignore[misc]
        ((said, replied),) = [(one.said, one.replied) for one in past]
        assert said == "Both" and replied[-1] == "One thing."
        found = [(call.name, dict(call.arguments), result) for call, result in replied[:-1]]
        place = [json.loads(call["arguments"]) for call in (down, up)]
        assert found == [("look", place[0], "grass"), ("look", place[1], "sky")]


@pytest.mark.parametrize(
    ("asked", "spoken", "written"),
    [
        ("Smile", True, "😀 I have nothing to say to that."),
        ("Hush", True, "I have nothing to say to that."),
        ("Hush", False, None),
    ],
)
async def test_a_response_in_which_there_is_nothing_to_say_is_told_as_such(
    asked: str, spoken: bool, written: str | None
) -> None:
    async with client() as (one, llm):
        if spoken:
            settings = {"type": "realtime", "output_modalities": ["audio"]}
            one.send("session.update", session=settings)
        one.write(asked)
        response = await one.respond()
        assert response["status"] == "incomplete"
        assert response["status_details"]["error"]["code"] == "nothing_said"
        said = [item["content"][0]["transcript"] for item in response["output"]]
        assert said == ([] if written is None else [written])
        kinds = [event["type"] for event in one.told.events]
        assert ("response.output_audio.delta" in kinds) == spoken
        assert ("heard", 0) in llm.log


async def test_the_user_speaks_what_the_client_says_until_it_says_otherwise() -> None:
    async with client(AUTO) as (one, _):

        def spoken_in(code: str | None) -> str:
            audio = {"input": {"transcription": {"language": code}}}
            one.send("session.update", session={"type": "realtime", "audio": audio})
            return one.visit.session.language.code

        assert [spoken_in(code) for code in ("fr", None, "en", None)] == ["fr", AUTO, "en", AUTO]
        one.visit.session.language = language("fr")  # it was detected
        assert spoken_in(None) == "fr"


# ---- which function is called, and what is read


@pytest.mark.parametrize("in_session", [True, False])
async def test_a_response_without_parallel_calls_ends_with_its_first_call(in_session: bool) -> None:
    async with client() as (one, _):
        alone = {"parallel_tool_calls": False}
        if in_session:
            one.send("session.update", session=alone)
            assert one.told.events[-1]["session"]["parallel_tool_calls"] is False
        one.write("Both")
        (up,) = calls(await one.respond(**({} if in_session else alone)))
        assert json.loads(up["arguments"]) == {"where": "up"}
        one.write("Both")
        assert len(calls(await one.respond())) == (1 if in_session else 2)


async def test_an_effort_is_told_to_the_model_and_back_to_the_client() -> None:
    async with client() as (one, _):
        conversation = one.dialogue.conversation
        one.send("session.update", session={"reasoning": {"effort": "high"}})
        assert one.told.events[-1]["session"]["reasoning"] == {"effort": "high"}
        one.write("Hello")
        await one.respond()
        assert conversation.effort == "high"
        one.write("Hello")
        assert (await one.respond(reasoning={"effort": "low"}))["status"] == "completed"
        await anyio.sleep(0.1)
        assert conversation.effort == "high", "it was for one response"
        one.send("session.update", session={"instructions": "Be brief."})
        assert one.told.events[-1]["session"]["reasoning"] == {"effort": "high"}


def rewritten(llm: ScriptedLlm) -> tuple[str, list[Any]]:
    """What the language model was last told to go by."""
    return [what for name, what in llm.log if name == "rewrite"][-1]  # type: ignore[return-value]


def required(llm: ScriptedLlm) -> list[object]:
    return [what for name, what in llm.log if name == "required"]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", ("look", "listen")),
        ({"type": "function", "name": "listen"}, ("listen",)),
        ("auto", None),
        ("none", None),
    ],
)
async def test_a_response_calls_what_it_has_to_and_the_next_one_chooses(
    choice: object, names: tuple[str, ...] | None
) -> None:
    async with client() as (one, llm):
        one.send("session.update", session={"tools": [LOOK, LOOK | {"name": "listen"}]})
        one.write("Both")
        response = await one.respond(tool_choice=choice)
        assert response["status"] == "completed"
        assert required(llm) == ([] if names is None else [names])
        one.write("Hello")
        assert text(await one.respond()) == "Hello."
        assert len(required(llm)) == (names is not None), "it was for one response"


@pytest.mark.parametrize(
    "session",
    [
        {"tool_choice": {"type": "function", "name": "jump"}},
        {"tool_choice": "required", "tools": []},
        {"tool_choice": {"type": "function", "name": "look"}, "tools": [LOOK | {"name": "listen"}]},
    ],
)
async def test_a_function_that_there_is_not_is_refused_and_the_rest_is_done(
    session: dict[str, Any],
) -> None:
    async with client() as (one, llm):
        one.send("session.update", session=session | {"instructions": "Be brief."})
        error, updated = one.told.events[-2:]
        assert error["error"]["param"] == "session.tool_choice"
        assert updated["session"]["tool_choice"] == "auto"
        assert updated["session"]["instructions"] == "Be brief."
        assert not required(llm)
        with pytest.raises(ProtocolError) as refused:
            await one.respond(**session)
        assert refused.value.param == "response.tool_choice"


def written(role: str, said: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": said}]}


async def test_a_response_reads_its_own_input_and_the_next_one_the_conversation() -> None:
    async with client() as (one, llm):
        one.write("Hello")
        assert text(await one.respond()) == "Hello."
        (hello, _) = [
            event["item"]["id"]
            for event in one.told.events
            if event["type"] == "conversation.item.done"
        ]
        given = [
            written("system", "You are a judge."),
            {"type": "item_reference", "id": hello},
            written("assistant", "Hi."),
            written("user", "Smile"),
        ]
        since = len(one.told.events)
        response = await one.respond(input=given, conversation="none")
        assert text(response) == "😀"
        kinds = [event["type"] for event in one.told.events[since:]]
        assert "conversation.item.added" not in kinds, "it is no part of the conversation"
        (judged,) = [
            what
            for name, what in llm.log
            if name == "rewrite" and "judge" in what[0]  # type: ignore[index]
        ]
        assert [(turn.said, turn.replied) for turn in judged[1]] == [  # type: ignore[index]
            ("Hello", ("Hi.",))
        ]
        one.write("Hush")
        assert (await one.respond(instructions="Be brief."))["status"] == "incomplete"
        read = [what for name, what in llm.log if name == "rewrite" and "brief" in what[0]]  # type: ignore[index]
        assert [turn.said for turn in read[-1][1]] == ["Hello"]  # type: ignore[index]


async def test_a_reference_to_no_item_is_refused() -> None:
    async with client() as (one, _):
        refused = await one.respond(input=[{"type": "item_reference", "id": "item_none"}])
        assert refused["param"] == "response.input[0].id"
        one.write("Hello")
        assert text(await one.respond()) == "Hello."


def told(one: Client, kind: str) -> list[dict[str, Any]]:
    """The responses or errors in the events of a kind so far."""
    found = [event for event in one.told.events if event["type"] == kind]
    return [event["error"] if kind == "error" else event["response"] for event in found]


async def test_a_response_is_in_progress_from_its_request_and_can_be_cancelled() -> None:
    async with client() as (one, llm):
        llm.burst_cost = 60.0
        one.write("Hello")
        one.send("response.create", response={"metadata": {"asked": "Hello"}})
        await anyio.sleep(0.1)
        (created,) = told(one, "response.created")
        assert (created["status"], created["metadata"]) == ("in_progress", {"asked": "Hello"})
        one.send("response.cancel", response_id=created["id"])
        await anyio.sleep(100)
        (done,) = told(one, "response.done")
        assert (done["id"], done["status"]) == (created["id"], "cancelled")
        assert len(told(one, "response.created")) == 1


def aside(asked: str, **settings: object) -> dict[str, object]:
    """Settings of a response out of the conversation."""
    given = {"input": [written("user", asked)], "metadata": {"asked": asked}}
    return {"conversation": "none", "instructions": f"Rules of {asked}."} | given | settings


# ---- outputs that come late


def read_of_calls(llm: ScriptedLlm) -> list[tuple[str, str]]:
    """The calls with their outputs in the history that was put in place last."""
    parts = [part for one in rewritten(llm)[1] for part in one.replied]
    return [(part[0].name, part[1]) for part in parts if not isinstance(part, str)]


async def other_turn(one: Client) -> None:
    one.write("Hello")
    assert text(await one.respond()) == "Hello."


async def out_of_the_conversation(one: Client) -> None:
    assert text(await one.respond(**aside("Capital"))) == "Lisbon."


async def other_settings(one: Client) -> None:
    one.send("session.update", session={"instructions": "Be brief."})


async def other_calls(one: Client) -> None:
    one.write("Both")
    assert len(calls(await one.respond())) == 2


BETWEEN = [other_turn, out_of_the_conversation, other_settings, other_calls]


@pytest.mark.parametrize("happens", BETWEEN)
async def test_outputs_that_come_late_are_read_and_answered(
    happens: Callable[[Client], Awaitable[None]],
) -> None:
    async with client() as (one, llm):
        one.write("Both")
        up, down = calls(await one.respond())
        await happens(one)
        one.returned(up, "sky")
        refused = await one.respond()
        assert refused["code"] == "nothing_to_respond_to" and "look" in refused["message"]
        one.returned(down, "grass")
        response = await one.respond()
        assert response["status"] == "completed" and text(response)
        if happens is out_of_the_conversation:
            assert results(llm) == ["sky", "grass"], "the reply goes on"
        else:
            assert not results(llm), "there is no reply to go on with"
            assert read_of_calls(llm) == [("look", "sky"), ("look", "grass")]


async def test_the_speed_of_the_voice_is_chosen_and_asking_for_another_is_not_undone() -> None:
    async with client() as (one, _):

        def update(speed: float) -> float:
            one.send("session.update", session={"audio": {"output": {"speed": speed}}})
            return one.told.events[-1]["session"]["audio"]["output"]["speed"]

        skills = one.dialogue.skills
        assert update(1.25) == skills.voice.speed == 1.25
        skills.know(voice=skills.voice.changed("slower"))
        slower = skills.voice.speed
        assert slower < 1.25
        assert (update(1.25), skills.voice.speed) == (1.25, slower)
        tts = one.dialogue.engines.tts
        assert isinstance(tts, ScriptedTts)
        tts.paces = False
        assert update(1.0) == 1.25
        (error,) = [one["error"] for one in one.told.events if one["type"] == "error"]
        assert error["param"] == "session.audio.output.speed"
        assert skills.voice.speed == slower
