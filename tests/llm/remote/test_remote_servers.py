"""Servers of many kinds, over real sockets: what each refuses or sends, and what is made of it."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.llm.remote.chatservers import (
    DONE,
    STOP,
    Play,
    Request,
    Scripted,
    calling,
    delta,
    refusing,
    saying,
    sending,
)
from tests.llm.remote.test_remote import (
    CLOCK,
    all_of,
    failing,
    no_keys,
    no_threads,
    serve,
    settings,
    shown,
    spoken,
    talk,
)
from voiceloop.assembly.loading import warm_llm
from voiceloop.llm.remote.remote import openai
from voiceloop.llm.text.messages import BEGAN
from voiceloop.types import Past, Tool, ToolCall

__all__ = ["no_keys", "no_threads", "serve"]

pytestmark = pytest.mark.real

CUT = {"choices": [{"delta": {}, "finish_reason": "length"}]}


def thinking(text: str, key: str = "reasoning_content") -> dict[str, Any]:
    return {"choices": [{"delta": {key: text}, "finish_reason": None}]}


def choosy(refuses: Callable[[dict[str, Any]], str], *plays: Play, status: int = 400) -> Play:
    """Replies as the plays say, in turn, to requests of which nothing is refused."""
    left = list(plays)

    def play(request: Request) -> None:
        owner: Scripted = request.server.owner  # type: ignore[attr-defined]
        if why := refuses(owner.asked[-1]):
            request.status(status, {"error": {"message": why}})
        else:
            (left.pop(0) if len(left) > 1 else left[0])(request)

    return play


# ---- thoughts


def test_a_model_that_thinks_for_longer_than_it_may_be_silent_is_waited_for(
    serve: Callable[..., Scripted],
) -> None:
    pause = threading.Event()

    def play(request: Request) -> None:
        request.begin()
        for _ in range(25):
            pause.wait(0.1)
            request.send(thinking("hm "))
        request.send(delta("Yes."), STOP, DONE)
        request.end()

    server = serve(play)
    assert spoken(all_of(talk(server, timeout_s=2.0).reply("Hello", 1))) == "Yes."
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "thought", [[thinking("hm ")] * 30, [*[delta("<think>hm ")] * 30, delta("</think>")]]
)
def test_a_thought_takes_nothing_from_what_is_said(
    serve: Callable[..., Scripted], thought: list[object]
) -> None:
    server = serve(sending(*thought, *[delta(f" w{n}") for n in range(30)], STOP))
    conversation = talk(server, max_new_tokens=20, max_thought_tokens=40)
    for turn, most in ((1, 20), (2, 60)):
        assert len(spoken(all_of(conversation.reply("Hello", turn))).split()) == 20
        assert server.asked[-1]["max_tokens"] == most, "once it has thought it is given room"


@pytest.mark.parametrize(
    "thought", [[thinking("hm ", "reasoning")] * 9, [delta("<think>"), *[delta("hm ")] * 9]]
)
def test_a_thought_that_was_cut_off_is_given_room_and_then_told(
    serve: Callable[..., Scripted], thought: list[object]
) -> None:
    cut = sending(*thought, CUT)
    server = serve(cut, saying("Yes."))
    assert spoken(all_of(talk(server).reply("Hello", 1))) == "Yes."
    assert [one["max_tokens"] for one in server.asked] == [100, 1124]
    server = serve(cut)
    error = failing(talk(server).reply("Hello", 1))
    assert "it thought for 9 tokens and was cut off" in error.message
    assert "llm.max_thought_tokens" in error.hint and len(server.asked) == 2
    usage = {"usage": {"completion_tokens_details": {"reasoning_tokens": 64}}}
    hidden = failing(talk(serve(sending(CUT, usage))).reply("Hello", 1))
    assert "it thought for 64 tokens" in hidden.message


@pytest.mark.parametrize("piece", [thinking("hm hm "), delta("hm hm "), delta("")])
def test_a_thought_without_end_is_ended(
    serve: Callable[..., Scripted], piece: dict[str, Any]
) -> None:
    hung_up = threading.Event()

    def play(request: Request) -> None:
        request.begin()
        try:
            request.send(delta("<think>"))
            while True:
                request.send(piece)
        finally:
            hung_up.set()

    server = serve(play)
    error = failing(talk(server, max_thought_tokens=50).reply("Hello", 1))
    assert "was cut off" in error.message and len(server.asked) == 1
    assert hung_up.wait(5)


def test_a_model_is_asked_not_to_think_unless_it_may(serve: Callable[..., Scripted]) -> None:
    server = serve(saying("Yes."))
    all_of(talk(server, thinking="on").reply("Hello", 1))
    (asked,) = server.asked
    assert {"reasoning_effort", "chat_template_kwargs"}.isdisjoint(asked)
    assert asked["max_tokens"] == 1124


def test_thoughts_whose_beginning_is_not_marked_are_said_once_at_most(
    serve: Callable[..., Scripted], caplog: pytest.LogCaptureFixture
) -> None:
    thought = saying("They want a fact.", " So.", "\n</think>\n\n", "Paris.")
    server = serve(thought, thought, saying("Rome", ", yes."), thought)
    conversation = talk(server)
    assert "They want" in spoken(all_of(conversation.reply("France?", 1)))
    for turn, said in ((2, "Paris."), (3, "Rome, yes."), (4, "Paris.")):
        assert spoken(all_of(conversation.reply("And?", turn))).strip() == said
    assert sum("begins to think" in one.getMessage() for one in caplog.records) == 1


# ---- loading


def test_to_warm_up_takes_no_more_than_the_first_of_a_reply(
    serve: Callable[..., Scripted],
) -> None:
    hung_up = threading.Event()

    def play(request: Request) -> None:
        request.begin()
        request.send(thinking("hm "))
        if request.closed_by_client():
            hung_up.set()

    server = serve(play)
    warm_llm(openai(settings(server)))
    assert [one["max_tokens"] for one in server.asked] == [1]
    assert hung_up.wait(5)


def test_to_warm_up_waits_until_the_server_has_loaded_its_model(
    serve: Callable[..., Scripted],
) -> None:
    loading = refusing(503, {"error": {"code": 503, "message": "Loading model"}})
    server = serve(loading, loading, loading, loading, saying("I"))
    warm_llm(openai(settings(server)))
    assert len(server.asked) == 5


def test_what_a_server_refuses_is_found_out_while_it_is_loaded(
    serve: Callable[..., Scripted], caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(asked: dict[str, Any]) -> str:
        if "max_tokens" in asked:
            return "'max_tokens' is not supported, use 'max_completion_tokens'"
        if "reasoning_effort" in asked:
            return "Unrecognized request argument supplied: reasoning_effort"
        if "chat_template_kwargs" in asked:
            return "Unknown parameter: 'chat_template_kwargs'"
        if asked["messages"][0]["role"] == "system":
            return "System role not supported"
        return "temperature: only 1 is supported" if "temperature" in asked else ""

    server = serve(choosy(refuses, saying("Yes.")))
    llm = openai(settings(server, system="Be kind."))
    warm_llm(llm)
    before = len(server.asked)
    for turn in (1, 2):
        assert spoken(all_of(llm.conversation().reply("Hello", turn))) == "Yes."
    assert len(server.asked) == before + 2, "each is refused once"
    assert shown(server) == [("user", "Be kind.\n\nHello")]
    assert server.asked[-1]["max_completion_tokens"] == 100
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(told) == 1 and "takes no temperature" in told[0]


def test_a_first_token_that_is_none_is_no_failure(serve: Callable[..., Scripted]) -> None:
    why = "Could not finish the message because max_tokens or model output limit was reached."
    warm_llm(openai(settings(serve(refusing(400, {"error": {"message": why}})))))


# ---- what is refused


def alternating(asked: dict[str, Any]) -> str:
    roles = [one["role"] for one in asked["messages"] if one["role"] != "system"]
    wrong = roles[0] != "user" or any(a == b for a, b in itertools.pairwise(roles))
    return "Conversation roles must alternate user/assistant/user/assistant/..." if wrong else ""


def test_turns_of_one_role_in_a_row_are_merged_where_they_must_be(
    serve: Callable[..., Scripted],
) -> None:
    first = calling({"name": "clock", "arguments": "{}"}, id="a")
    server = serve(choosy(alternating, first, saying("Yes."), status=500))
    conversation = talk(server, system="Be kind.")
    conversation.rewrite("Be kind.", [Past("", ("Hello there.",))], (CLOCK,))
    (called,) = all_of(conversation.reply("What time is it?", 1))
    assert isinstance(called, ToolCall)
    assert spoken(all_of(conversation.reply("Never mind", 2))) == "Yes."
    assert shown(server) == [
        ("system", f"Be kind.\n\n{BEGAN} Hello there."),
        ("user", "What time is it?\n\nNever mind"),
    ]
    assert len(server.asked) == 3, "it is refused once"


def test_a_refusal_that_does_not_end_is_told(serve: Callable[..., Scripted]) -> None:
    for why in ("roles must alternate", "temperature is not supported", "invalid stop", "tools?"):
        server = serve(refusing(400, {"error": {"message": why}}))
        assert why in failing(talk(server, system="Be kind.").reply("Hello", 1)).message
        assert len(server.asked) <= 3


def test_what_one_conversation_is_refused_takes_nothing_from_others(
    serve: Callable[..., Scripted],
) -> None:
    def refuses(asked: dict[str, Any]) -> str:
        odd = any(one["function"]["description"] == "odd" for one in asked.get("tools", ()))
        return "Invalid 'tools[0].function.parameters'" if odd else ""

    server = serve(choosy(refuses, saying("Yes.")))
    llm = openai(settings(server))
    odd, other = llm.conversation(), llm.conversation()
    odd.rewrite("", (), (Tool("odd", "odd", {}),))
    other.rewrite("", (), (CLOCK,))
    for turn in (1, 2):
        assert spoken(all_of(odd.reply("Hello", turn))) == "Yes."
        assert "tools" not in server.asked[-1]
        later = llm.conversation()
        later.rewrite("", (), (CLOCK,))
        for conversation in (other, later):
            all_of(conversation.reply("Hello", turn))
            assert "tools" in server.asked[-1]
    odd.rewrite("", (), (CLOCK,))
    all_of(odd.reply("Hello", 3))
    assert "tools" in server.asked[-1], "its new tools are no longer the refused ones"


@pytest.mark.parametrize("in_text", [False, True])
def test_a_tool_with_a_name_that_servers_refuse_is_called_by_another(
    serve: Callable[..., Scripted], in_text: bool
) -> None:
    tools = [Tool(name, "", {}) for name in ("get.weather", "get_weather", "größe")]

    def play(request: Request) -> None:
        name = server.asked[-1]["tools"][0]["function"]["name"]
        written = f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'
        told = calling({"name": name, "arguments": "{}"}, id="abc")
        (saying(written) if in_text else told)(request)

    server = serve(play, saying("Sunny."))
    conversation = talk(server)
    conversation.rewrite("", (), tools, ("get.weather",))
    (call,) = all_of(conversation.reply("How is the weather?", 1))
    assert call.name == "get.weather"
    assert spoken(all_of(conversation.tool_results([(call, "sunny")], 1))) == "Sunny."
    asked = server.asked[-1]
    sent = [one["function"]["name"] for one in asked["tools"]]
    assert sent == ["get_weather_2", "get_weather", "gr_e"]
    assert asked["messages"][1]["tool_calls"][0]["function"]["name"] == sent[0]
    assert asked["tool_choice"]["function"]["name"] == sent[0]


@pytest.mark.parametrize(
    ("required", "choice"),
    [
        ((), None),
        (("clock",), {"type": "function", "function": {"name": "clock"}}),
        (("clock", "timer"), "required"),
    ],
)
def test_a_server_is_told_what_has_to_be_called(
    serve: Callable[..., Scripted], required: tuple[str, ...], choice: object
) -> None:
    server = serve(saying("Yes."), saying("Yes."))
    conversation = talk(server)
    assert conversation.calls([CLOCK])
    conversation.rewrite("", (), (CLOCK, Tool("timer", "", {})), required)
    all_of(conversation.reply("Hello", 1))
    conversation.rewrite("", (), (CLOCK,))
    all_of(conversation.reply("Hello", 2))
    assert [asked.get("tool_choice") for asked in server.asked] == [choice, None]


# ---- what goes wrong in a stream


def test_a_reply_that_comes_whole_is_one(serve: Callable[..., Scripted]) -> None:
    message = {"role": "assistant", "content": "Yes,\nso it is."}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    server = serve(refusing(200, body))
    assert spoken(all_of(talk(server).reply("Hello", 1))) == "Yes,\nso it is."
    server = serve(refusing(200, {"error": {"message": "it broke"}}))
    assert "it broke" in failing(talk(server).reply("Hello", 1)).message


# ---- what is sent, and how much of it


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ({"data": [{"id": f"m{n}", "description": "d" * 600} for n in range(9000)]}, True),
        ([{"id": "m1"}, {"id": "m2"}], True),
        ({"models": [{"name": "m1"}, 5, {"id": None}]}, True),
        ({"data": "none"}, False),
        (b"{", False),
        (b"[" * 100_000, False),
    ],
)
def test_a_list_of_models_may_be_long_or_missing(
    serve: Callable[..., Scripted], told: object, known: bool
) -> None:
    server = serve(saying("Yes."), models=refusing(200, told))
    llm = openai(settings(server))
    assert ("m1" in llm._server.client.models) is known
    assert spoken(all_of(llm.conversation().reply("Hello", 1))) == "Yes."


GIVEN = ("{}", '{"a": "x\ny"}')


def test_calls_of_one_id_get_their_results_apart(serve: Callable[..., Scripted]) -> None:
    functions = [{"name": f"f{n}", "arguments": text} for n, text in enumerate(GIVEN)]
    server = serve(calling(*functions, id="x"), saying("Yes."))
    conversation = talk(server)
    items = all_of(conversation.reply("Hello", 1))
    assert [(one.name, dict(one.arguments)) for one in items] == [("f0", {}), ("f1", {"a": "x\ny"})]
    all_of(conversation.tool_results([(one, one.name) for one in items], 1))
    back = [one for one in server.asked[-1]["messages"] if one["role"] == "tool"]
    assert len({one["tool_call_id"] for one in back}) == 2
    assert [one["content"] for one in back] == ["f0", "f1"]
