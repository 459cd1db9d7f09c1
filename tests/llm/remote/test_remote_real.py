"""The language model elsewhere, against the server of transformers in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.llm.remote.chatservers import Real, real
from tests.llm.remote.test_remote import no_threads
from tests.server.serving import until
from voiceloop.bundled import bundled
from voiceloop.llm.engine import speculative
from voiceloop.llm.remote.errors import RequestError
from voiceloop.llm.remote.remote import RemoteConversation, openai
from voiceloop.settings.config import LlmConfig
from voiceloop.types import Past, TokenBurst, Tool, ToolCall

__all__ = ["no_threads"]

pytestmark = pytest.mark.real

STARTER = str(bundled("models/starter/llm-target"))
STORY = "Tell me a short story."
DIALOGUE = ("What is the capital of France?", STORY, "Why is the sky blue?", "Thank you.")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with real(tmp_path_factory.mktemp("transformers")) as server:
        yield server


def talk(server: Real, **changes: Any) -> RemoteConversation:
    usual: dict[str, Any] = {"base_url": server.url, "target": STARTER, "engine": "openai"}
    usual["system"] = ""  # the starter was trained without one
    return openai(LlmConfig(**usual | changes)).conversation()


def all_of(steps: Iterator[Any]) -> list[Any]:
    return [item for item in steps if item is not None]


def spoken(items: list[Any]) -> str:
    return "".join(item.text for item in items if isinstance(item, TokenBurst))


def test_the_starter_says_elsewhere_what_it_says_here(server: Real) -> None:
    here, there = speculative(LlmConfig(draft="none")).conversation(), talk(server)
    for turn, text in enumerate(DIALOGUE, 1):
        assert spoken(all_of(there.reply(text, turn))) == spoken(all_of(here.reply(text, turn)))
    assert there.standing.exchanges == here.standing.exchanges == len(DIALOGUE) - 1
    assert (
        there.standing.tokens_read > here.standing.tokens_read
    )  # it has no cache that it would tell of


def test_a_history_that_was_written_and_one_that_was_cut_are_read_alike(server: Real) -> None:
    here, there = speculative(LlmConfig(draft="none")).conversation(), talk(server)
    past = [
        Past("My name is Anna.", ("Hello, Anna!",)),
        Past("How are you?", ("I am well.",)),
    ]
    replies = list[str]()
    for one in (here, there):
        one.rewrite("", past)
        all_of(one.reply(STORY, 1))
        assert one.heard(5)
        replies.append(spoken(all_of(one.reply("What is my name?", 2))))
    assert replies[0] == replies[1]


def test_a_tool_is_called_and_its_result_is_spoken(server: Real) -> None:
    clock = Tool("get_time", "Tells the time.", {"type": "object", "properties": {}})
    for tools in ((), (clock,)):
        conversation = talk(server)
        conversation.rewrite("", (), tools)
        *_, call = all_of(conversation.reply("What time is it?", 1))
        assert isinstance(call, ToolCall) and call.name == "get_time" and not call.problem
        told = '{"time": "2:05 PM", "day": "Monday", "date": "January 5"}'
        assert "2:05" in spoken(all_of(conversation.tool_results([(call, told)], 1)))


def test_a_request_that_is_cancelled_stops_the_server(server: Real) -> None:
    conversation = talk(server)
    whole = sum(len(item.ids) for item in all_of(conversation.reply(STORY, 1)))
    before, others = len(server.stopped()), 5
    for turn in range(2, 2 + others):
        steps = conversation.reply(STORY, turn)
        assert next(item for item in steps if item) is not None
        steps.close()
        assert conversation.heard(0) == ""
    until(lambda: len(server.stopped()) == before + others)
    assert max(server.stopped()[before:]) < whole / 2
    assert spoken(all_of(conversation.reply("What is the capital of France?", 99)))


def test_a_server_that_is_killed_in_a_reply_and_started_again_is_taken_up(server: Real) -> None:
    conversation = talk(server)
    first = all_of(conversation.reply("What is the capital of France?", 1))
    steps = conversation.reply(STORY, 2)
    said: list[Any] = [next(item for item in steps if item) for _ in range(4)]
    server.kill()
    begun = time.monotonic()
    with pytest.raises(RequestError) as caught:
        said += all_of(steps)
    assert time.monotonic() - begun < 10
    assert "broke off" in caught.value.message
    assert conversation.heard(3) == "".join(item.text for item in said[:3])
    with pytest.raises(RequestError) as caught:
        all_of(conversation.reply("Are you there?", 3))
    assert "does not answer" in caught.value.message
    assert conversation.heard(0) == ""
    server.start()
    assert spoken(all_of(conversation.reply("What is the capital of France?", 4)))
    messages = [one["content"] for one in conversation._request({})["messages"]]
    assert messages[:5] == [
        "What is the capital of France?",
        spoken(first),
        STORY,
        "".join(item.text for item in said[:3]),
        "Are you there? What is the capital of France?",
    ]


def test_a_model_that_the_server_does_not_have_is_one_line(server: Real) -> None:
    with pytest.raises(RequestError) as caught:
        all_of(talk(server, target="nosuch/model").reply("Hello", 1))
    assert "500" in caught.value.message and "\n" not in caught.value.message
    with pytest.raises(RequestError, match="no such address"):
        all_of(talk(server, base_url=server.url.removesuffix("/v1")).reply("Hello", 1))


def test_what_the_server_does_not_know_is_left_out(
    server: Real, caplog: pytest.LogCaptureFixture
) -> None:
    usual = spoken(all_of(talk(server).reply("Hello", 1)))
    conversation = talk(server, top_k=5)
    assert spoken(all_of(conversation.reply("Hello", 1))) == usual
    assert "takes no top_k" in caplog.text
