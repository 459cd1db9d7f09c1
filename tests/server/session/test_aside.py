"""Responses out of the conversation, beside what is spoken in it, over scripted engines."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.server.session.test_calls import LOOK, Client, client, text

pytestmark = pytest.mark.virtual

SPOKEN = {"output_modalities": ["audio"]}


def aside(said: str, **response: object) -> dict[str, Any]:
    part = {"type": "input_text", "text": said}
    given = [{"type": "message", "role": "user", "content": [part]}]
    usual = {"conversation": "none", "input": given, "metadata": {"for": said}}
    return {"instructions": "Be brief.", **usual, **response}


def of(one: Client, kind: str) -> list[dict[str, Any]]:
    return [event for event in one.told.events if event["type"] == kind]


def done(one: Client) -> list[tuple[str | None, str]]:
    """What each response was for, and how it ended, in the order of their ends."""
    responses = [event["response"] for event in of(one, "response.done")]
    return [((one["metadata"] or {}).get("for"), one["status"]) for one in responses]


async def speaks(one: Client) -> None:
    """Have a long reply spoken, and wait for its first sound."""
    one.write("Long")
    one.send("response.create", response=SPOKEN)
    await anyio.sleep(0.5)
    assert of(one, "response.output_audio.delta")


async def test_they_are_created_at_once_and_end_while_another_is_spoken() -> None:
    async with client() as (one, llm):
        await speaks(one)
        told = len(one.told.events)
        for said in ("Hello", "Capital", "Both"):
            tools = [LOOK] if said == "Both" else []
            one.send("response.create", response=aside(said, tools=tools))
        await anyio.sleep(0.01)
        kinds = [event["type"] for event in one.told.events[told:]]
        assert kinds.count("response.created") == 3 and "error" not in kinds
        await anyio.sleep(30)
        assert sorted(done(one)[:3]) == [
            ("Both", "completed"),
            ("Capital", "completed"),
            ("Hello", "completed"),
        ]
        assert done(one)[3:] == [(None, "completed")]
        responses = {
            event["response"]["metadata"]["for"]: event["response"]
            for event in of(one, "response.done")[:3]
        }
        assert text(responses["Hello"]) == "Hello." and text(responses["Capital"]) == "Lisbon."
        assert [item["type"] for item in responses["Both"]["output"]] == ["function_call"] * 2
        assert {response["conversation_id"] for response in responses.values()} == {None}
        (spoken,) = of(one, "response.done")[3]["response"]["output"]
        assert spoken["content"][0]["transcript"] == "One two three four five six. " * 5
        one.write("Sum")
        assert text(await one.respond()) == "Fifty-six."
        (_, past) = [what for name, what in llm.log if name == "rewrite"][-1]  # type: ignore[misc]
        assert not any(one.said in ("Hello", "Capital") for one in past), "they are no part of it"


@pytest.mark.parametrize("modality", ["text", "audio"])
async def test_one_of_the_servers_own_assistant_waits_and_rules_answer_it(modality: str) -> None:
    async with client() as (one, _):
        await speaks(one)
        asked = aside("What is 7 times 8?", output_modalities=[modality], tools=[])
        del asked["instructions"]
        one.send("response.create", response=asked)
        await anyio.sleep(30)
        assert done(one) == [(None, "completed"), ("What is 7 times 8?", "completed")]
        (item,) = of(one, "response.done")[1]["response"]["output"]
        assert "7 times 8 is 56." in item["content"][0].values()


@pytest.mark.parametrize("when", [0.0, 0.05])
async def test_one_is_cancelled_alone(when: float) -> None:
    async with client() as (one, _):
        await speaks(one)
        one.send("response.create", response=aside("Long"))
        await anyio.sleep(0.01 + when)
        created = of(one, "response.created")[-1]["response"]["id"]
        one.send("response.cancel", response_id=created)
        await anyio.sleep(30)
        assert done(one) == [("Long", "cancelled"), (None, "completed")]


async def test_one_may_be_cut_off_or_fail_or_say_nothing() -> None:
    async with client() as (one, llm):
        await speaks(one)
        llm.fail = lambda text: text == "Sum"
        one.send("response.create", response=aside("Sum"))
        one.send("response.create", response=aside("Long", max_output_tokens=2))
        one.send("response.create", response=aside("Hush"))
        await anyio.sleep(30)
        ended = [event["response"] for event in of(one, "response.done")]
        reasons = {
            (response["metadata"] or {}).get("for"): response["status_details"]
            for response in ended
        }
        assert reasons["Long"]["reason"] == "max_output_tokens"
        assert reasons["Hush"]["error"]["code"] == "nothing_said"
        assert reasons["Sum"]["type"] == "failed"
        assert ended[-1]["status"] == "completed"
