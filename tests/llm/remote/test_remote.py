"""The language model elsewhere, against a server that does as the test says, over real sockets."""

from __future__ import annotations

import gc
import json
import logging
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

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
from tests.server.serving import until
from voiceloop.catalog.names import prepare
from voiceloop.cli.main import main
from voiceloop.errors import ConfigError, EngineError
from voiceloop.llm.remote.chatserver import STEP_S
from voiceloop.llm.remote.errors import RequestError, unreachable
from voiceloop.llm.remote.remote import RemoteConversation, openai
from voiceloop.llm.remote.servers import address
from voiceloop.llm.text.messages import SPOKEN
from voiceloop.settings.config import Config, LlmConfig
from voiceloop.status import engine_names
from voiceloop.types import LOADS, Past, TokenBurst, Tool, ToolCall

pytestmark = pytest.mark.real

KEY = "sk-this-is-a-secret-0123456789"
CLOCK = Tool("clock", "Tells the time.", {"type": "object", "properties": {}})


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "VOICELOOP_LLM_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_threads() -> Iterator[None]:
    """An engine that nobody has any more leaves no thread."""
    yield
    gc.collect()  # errors that were caught hold what they passed through
    until(lambda: not any(one.name == "voiceloop-llm-requests" for one in threading.enumerate()))


@pytest.fixture
def serve() -> Iterator[Callable[..., Scripted]]:
    with ExitStack() as stack:
        yield lambda *plays, **options: stack.enter_context(Scripted(*plays, **options))


def settings(server: Scripted, **changes: Any) -> LlmConfig:
    usual = {"engine": "openai", "base_url": server.url, "target": "small", "timeout_s": 5.0}
    usual["system"] = ""  # or each request would begin with the one that is usual
    return LlmConfig(**usual | changes)


def talk(server: Scripted, **changes: Any) -> RemoteConversation:
    return openai(settings(server, **changes)).conversation()


def all_of(steps: Iterator[Any]) -> list[Any]:
    return [item for item in steps if item is not None]


def spoken(items: list[Any]) -> str:
    return "".join(item.text for item in items if isinstance(item, TokenBurst))


def failing(steps: Iterator[Any]) -> EngineError:
    with pytest.raises(EngineError) as caught:
        all_of(steps)
    error = caught.value
    assert "\n" not in error.message + error.hint and len(error.message) < 400
    return error


def shown(server: Scripted) -> list[tuple[str, str]]:
    """The messages of the newest request."""
    return [(one["role"], one["content"]) for one in server.asked[-1]["messages"]]


# ---- what is asked, and what comes


def test_a_reply_comes_in_bursts_whose_ids_count_words(serve: Callable[..., Scripted]) -> None:
    server = serve(saying("The sky", " is bl", "ue.", read=12))
    conversation = talk(server)
    items = all_of(conversation.reply("Why?", 1))
    assert [item.text for item in items] == ["The sky", " is bl", "ue."]
    assert [item.ids for item in items] == [(0, 1), (2, 3), (4,)]
    assert [item.ends for item in items] == [(3, 7), (3, 6), (3,)]
    assert {(item.drafted, item.accepted) for item in items} == {(0, 0)}
    assert conversation.standing.tokens_read == 12


def test_only_what_was_set_is_asked_for(serve: Callable[..., Scripted]) -> None:
    server = serve(saying("Yes."))
    all_of(talk(server).reply("Hello", 1))
    (asked,) = server.asked
    assert asked == {
        "model": "small",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "temperature": 0.0,
        "reasoning_effort": "none",
        "chat_template_kwargs": {"enable_thinking": False},
    }
    every = {"temperature": 0.7, "top_p": 0.9, "top_k": 20, "min_p": 0.1, "seed": 5}
    every |= {"repetition_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": -0.5}
    conversation = talk(server, **every, stop=("A", "B", "C", "D", "E"), system="Be brief.")
    conversation.rewrite("Be kind.", [Past("Hi", ("Hello.",))], (CLOCK,))
    all_of(conversation.reply("Hello", 1))
    asked = server.asked[-1]
    assert {name: asked[name] for name in every} == every
    assert asked["stop"] == ["A", "B", "C", "D"]
    assert [one["function"]["name"] for one in asked["tools"]] == ["clock"]
    assert shown(server) == [
        ("system", "Be kind."),
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "Hello"),
    ]
    assert conversation.seed == 5 and talk(server).seed is None


def test_history_is_what_was_heard(serve: Callable[..., Scripted]) -> None:
    server = serve(saying("One two", " three fo", "ur."))
    words = "One two three four.".split()
    for heard in range(6):
        conversation = talk(server)
        items = all_of(conversation.reply("Count.", 1))
        pieces = ["One", " two", " three", " fo", "ur."]
        assert spoken(items).split() == words
        assert conversation.heard(heard) == "".join(pieces[:heard])
        all_of(conversation.reply("Go on.", 2))
        if heard == 0:
            assert shown(server) == [("user", "Count. Go on.")]
        else:
            said = ("assistant", "".join(pieces[:heard]))
            assert shown(server) == [("user", "Count."), said, ("user", "Go on.")]
        assert conversation.standing.exchanges == (heard > 0)


def test_what_is_recited_is_history_as_any_reply(serve: Callable[..., Scripted]) -> None:
    server = serve(saying("Good."))
    for heard in range(4):
        conversation = talk(server)
        (burst,) = all_of(conversation.recite("What time is it?", 1, "It is nine."))
        assert burst.text == "It is nine." and burst.ids == (0, 1, 2)
        assert not server.asked or len(server.asked) == heard, "nobody was asked"
        conversation.heard(heard)
        all_of(conversation.reply("Thanks.", 2))
        if heard == 0:
            assert shown(server) == [("user", "What time is it? Thanks.")]
        else:
            said = "".join([*"It| is| nine.".split("|")][:heard])
            before = [("user", "What time is it?"), ("assistant", said)]
            assert shown(server) == [*before, ("user", "Thanks.")]


def test_a_call_that_nothing_came_back_of_has_never_been(serve: Callable[..., Scripted]) -> None:
    written = '<tool_call>{"name": "clock", "arguments": {}}</tool_call>'
    server = serve(saying("Let me", " see. <tool", written[5:]), saying("Bye."))
    conversation = talk(server)
    items = all_of(conversation.reply("What time is it?", 1))
    assert spoken(items) == "Let me see. "
    assert items[-1] == ToolCall(1, "call_1_1", "clock", {})
    all_of(conversation.reply("Never mind", 2))
    assert shown(server)[1] == ("assistant", "Let me see. ")


def test_a_turn_is_asked_anew_as_often_as_its_words_change(serve: Callable[..., Scripted]) -> None:
    server = serve(saying("Well."))
    conversation = talk(server)
    assert all_of(conversation.prefill("Tell", 1)) == []
    assert conversation.standing.end_probability is None
    assert server.asked == [], "what is read ahead is no reply"
    all_of(conversation.reply("Tell me", 1))
    all_of(conversation.revise("Tell me more", 1))
    assert shown(server) == [("user", "Tell me more")]
    all_of(conversation.prefill("", 1))  # nothing was said after all
    all_of(conversation.reply("Hello", 2))
    assert shown(server) == [("user", "Hello")]


def test_a_call_goes_back_with_what_it_returned(serve: Callable[..., Scripted]) -> None:
    told = {"name": "clock", "arguments": '{"zone": "UTC"}'}
    first = calling(told, said="Let me see.", id="abc")
    server = serve(first, saying("It is noon."), saying("Bye."))
    conversation = talk(server)
    first, call = all_of(conversation.reply("What time is it?", 1))
    assert call == ToolCall(1, "call_1_1", "clock", {"zone": "UTC"})
    second = all_of(conversation.tool_results([(call, "12:00")], 1))
    assert server.asked[-1]["messages"][1:] == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [{"id": "abc", "type": "function", "function": told}],
        },
        {"role": "tool", "tool_call_id": "abc", "content": "12:00"},
    ]
    assert [*first.ids, *second[0].ids] == list(range(6))
    assert conversation.heard(4) == "Let me see. It".replace(" It", "It")
    all_of(conversation.reply("Thanks", 2))
    assert server.asked[-1]["messages"][-2]["content"] == "It"
    assert all_of(conversation.tool_results([(call, "late")], 1)) == []


def test_a_text_may_end_the_reply_after_the_result_of_a_tool(
    serve: Callable[..., Scripted],
) -> None:
    server = serve(calling({"name": "pay", "arguments": "{}"}, id="abc"), saying("Bye."))
    conversation = talk(server)
    (call,) = all_of(conversation.reply("What is in my mail?", 1))
    assert isinstance(call, ToolCall)
    (burst,) = all_of(conversation.tool_results([(call, "asked")], 1, "Shall I pay?"))
    assert isinstance(burst, TokenBurst) and burst.text == "Shall I pay?"
    assert len(server.asked) == 1, "the server is not asked"
    all_of(conversation.reply("Yes", 2))
    roles = [(one["role"], one["content"]) for one in server.asked[-1]["messages"][2:]]
    assert roles == [("tool", "asked"), ("assistant", "Shall I pay?"), ("user", "Yes")]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ({"name": "clock", "arguments": "{"}, "its arguments are no JSON"),
        ({"name": "clock", "arguments": "[1]"}, "its arguments are no object"),
        ({"name": "", "arguments": "{}"}, "it has no name"),
    ],
)
def test_a_call_that_cannot_be_read_is_told(
    serve: Callable[..., Scripted], function: dict[str, str], problem: str
) -> None:
    (call,) = all_of(talk(serve(calling(function))).reply("What time is it?", 1))
    assert (call.problem, call.arguments) == (problem, {})


def test_a_server_that_never_stops_is_stopped(serve: Callable[..., Scripted]) -> None:
    hung_up = threading.Event()

    def babbling(request: Request) -> None:
        request.begin()
        try:
            while True:
                request.send(delta(" and on"))
        finally:
            hung_up.set()

    items = all_of(talk(serve(babbling), max_new_tokens=50).reply("Go", 1))
    assert 50 <= sum(len(item.ids) for item in items) <= 51
    assert hung_up.wait(5)


@pytest.mark.parametrize(
    ("ending", "most", "limited"),
    [
        ("stop", 50, False),
        ("length", 50, True),
        ("max_tokens", 50, True),
        ("tool_calls", 50, False),
        (None, 50, False),
        (None, 3, True),
        ("stop", 2, True),
    ],
)
def test_a_reply_that_is_cut_by_its_limit_says_so(
    serve: Callable[..., Scripted], ending: str | None, most: int, limited: bool
) -> None:
    end = [{"choices": [{"delta": {}, "finish_reason": ending}]}] if ending else []
    script = sending(delta("One two"), delta(" three four."), *end)
    conversation = talk(serve(script), max_new_tokens=most)
    assert not conversation.standing.limited
    all_of(conversation.reply("Go", 1))
    assert conversation.standing.limited == limited


def test_closing_a_reply_closes_its_request_within_a_step(serve: Callable[..., Scripted]) -> None:
    hung_up = threading.Event()

    def slow(request: Request) -> None:
        request.begin()
        request.send(delta("Well, "))
        if request.closed_by_client():
            hung_up.set()

    conversation = talk(serve(slow))
    steps = conversation.reply("Go", 1)
    assert next(item for item in steps if item) is not None
    begun = time.monotonic()
    assert next(steps) is None
    assert time.monotonic() - begun < STEP_S + 1.0
    assert not hung_up.is_set()
    steps.close()
    assert hung_up.wait(5)
    assert conversation.heard(1) == "Well,"


def test_conversations_go_on_side_by_side(serve: Callable[..., Scripted]) -> None:
    go = threading.Event()

    def waiting(request: Request) -> None:
        request.begin()
        go.wait(5)
        request.send(delta("Late."), STOP, DONE)
        request.end()

    server = serve(waiting, saying("Soon."))
    llm = openai(settings(server))
    late, soon = llm.conversation(), llm.conversation()
    steps = late.reply("One", 1)
    assert next(steps) is None
    while not server.asked:
        next(steps)
    assert spoken(all_of(soon.reply("Two", 1))) == "Soon."
    go.set()
    assert spoken(all_of(steps)) == "Late."


# ---- what goes wrong

PLAIN: dict[str, tuple[Play, str]] = {
    "401": (refusing(401, {"error": {"message": f"bad key {KEY}"}}), "wants a key (401)"),
    "403": (refusing(403, b"no", "text/plain"), "wants a key (403)"),
    "404": (
        refusing(404, {"error": {"message": "No models loaded. Load a model."}}),
        "no model called 'smal' (404): No models loaded. Load a model.",
    ),
    "no such path": (refusing(404, b"<html>Not here</html>", "text/html"), "no such address"),
    "400": (refusing(400, {"detail": "top_k is no field"}), "answers 400: top_k is no field"),
    "500": (refusing(500, b"it broke\nbadly", "text/plain"), "answers 500: it broke badly"),
    "502": (refusing(502, b"<html>Bad Gateway</html>", "text/html"), "answers 502"),
    "redirect": (refusing(307, b"", Location="http://127.0.0.1:9/"), "sends us elsewhere (307)"),
    "HTML": (refusing(200, b"<html>Welcome</html>", "text/html"), "answers with text/html"),
    "JSON": (refusing(200, {"choices": []}), "answers with application/json"),
    "429": (refusing(429, {"error": "slow down"}, Retry_After="60"), "left alone for 60 s"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_refusal_is_one_line(serve: Callable[..., Scripted], name: str) -> None:
    play, told = PLAIN[name]
    server = serve(play, models=("small", "smaller"))
    conversation = talk(server, target="smal")
    assert told in failing(conversation.reply("Hello", 1)).message
    assert len(server.asked) == (2 if name in ("500", "502") else 1)
    server.plays = [saying("Hello again.")]
    assert spoken(all_of(conversation.reply("Hello", 2))) == "Hello again."


def test_a_model_that_is_not_there_is_told_with_the_nearest(serve: Callable[..., Scripted]) -> None:
    server = serve(PLAIN["404"][0], models=("llama-3.2", "qwen-3"))
    error = failing(talk(server, target="lama-3.2").reply("Hello", 1))
    assert error.hint == "did you mean 'llama-3.2'?"
    assert failing(talk(server, target="?").reply("Hello", 1)).hint == "it has: llama-3.2, qwen-3"


def broken(*sent: object, end: bool = False) -> Play:
    """Some events, and then the connection ends, politely or not."""

    def play(request: Request) -> None:
        request.begin()
        request.send(*sent)
        if end:
            request.end()
        else:
            request.drop()

    return play


@pytest.mark.parametrize(
    ("play", "told"),
    [
        (broken(), "broke off"),
        (broken(end=True), "the reply ends before it is complete"),
        (broken({"error": {"message": "out of memory"}}), "has failed: out of memory"),
        (lambda request: request.drop(), "broke off"),
    ],
)
def test_what_breaks_before_the_first_word_is_tried_once_more(
    serve: Callable[..., Scripted], play: Play, told: str
) -> None:
    server = serve(play, saying("At last."))
    assert spoken(all_of(talk(server).reply("Hello", 1))) == "At last."
    server = serve(play)
    assert told in failing(talk(server).reply("Hello", 1)).message
    assert len(server.asked) == 2


def test_what_is_no_stream_is_not_asked_for_again(serve: Callable[..., Scripted]) -> None:
    server = serve(broken(b"data: {\n\n"))
    assert "data that is no JSON" in failing(talk(server).reply("Hello", 1)).message
    assert len(server.asked) == 1


@pytest.mark.parametrize("end", [True, False])
def test_what_breaks_after_the_first_word_is_not_tried_again(
    serve: Callable[..., Scripted], end: bool
) -> None:
    server = serve(broken(delta("It should be"), end=end), saying("Yes."))
    conversation = talk(server)
    failing(conversation.reply("Hello", 1))
    assert len(server.asked) == 1
    assert conversation.heard(2) == "It should"
    assert spoken(all_of(conversation.reply("And now?", 2))) == "Yes."
    assert shown(server)[1] == ("assistant", "It should")


def test_a_server_that_says_nothing_is_given_up(serve: Callable[..., Scripted]) -> None:
    over = threading.Event()

    def alive(request: Request) -> None:
        request.begin()
        while not over.wait(0.05):
            request.send(b": keep-alive\n\n")

    server = serve(alive)
    begun = time.monotonic()
    error = failing(talk(server, timeout_s=0.4).reply("Hello", 1))
    assert "said nothing for 0.4 s" in error.message and "llm.timeout_s" in error.hint
    assert 0.8 <= time.monotonic() - begun < 5
    assert len(server.asked) == 2
    over.set()


@pytest.mark.parametrize("begins", [True, False])
def test_a_server_that_sends_nothing_is_asked_once(
    serve: Callable[..., Scripted], begins: bool
) -> None:
    def load(request: Request) -> None:
        if begins:
            request.begin()
        request.closed_by_client()

    server = serve(load)
    error = failing(talk(server, timeout_s=0.3).reply("Hello", 1))
    assert "said nothing for 0.6 s" in error.message
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "play",
    [
        broken(delta("Yes."), STOP),
        broken(delta("Yes."), STOP, DONE),
        broken(delta("Yes."), STOP, b"data: {\n\n", end=True),
        broken(delta("Yes."), b"data: " + json.dumps(STOP).encode(), end=True),
        broken(delta("Yes."), b"data: [DONE]", end=True),
    ],
)
def test_what_comes_of_a_connection_behind_a_complete_reply_does_not_matter(
    serve: Callable[..., Scripted], play: Play
) -> None:
    server = serve(play, saying("And you?"))
    conversation = talk(server)
    assert spoken(all_of(conversation.reply("Hello", 1))) == "Yes."
    assert spoken(all_of(conversation.reply("And now?", 2))) == "And you?"
    assert len(server.asked) == 2


def test_a_reply_that_is_complete_is_not_waited_for(serve: Callable[..., Scripted]) -> None:
    def lingering(request: Request) -> None:
        request.begin()
        request.send(delta("Yes."), STOP)
        request.closed_by_client()

    begun = time.monotonic()
    assert spoken(all_of(talk(serve(lingering)).reply("Hello", 1))) == "Yes."
    assert time.monotonic() - begun < 4


def test_an_effort_and_single_calls_are_asked_for(serve: Callable[..., Scripted]) -> None:
    server = serve(saying("Yes."))
    conversation = talk(server)
    for effort, alone, tools in (("low", True, ()), ("high", False, (CLOCK,)), (None, True, ())):
        conversation.effort, conversation.parallel_calls = effort, not alone
        conversation.rewrite("", [], tools)
        all_of(conversation.reply("Hello", 1))
        asked = server.asked[-1]
        assert asked["reasoning_effort"] == (effort or "none")
        assert ("chat_template_kwargs" in asked) == (effort is None)
        assert (asked["max_tokens"] > 1000) == (effort is not None), "a thought needs room"
        assert "parallel_tool_calls" not in asked
    conversation.rewrite("", [], (CLOCK,))
    all_of(conversation.reply("Hello", 1))
    assert server.asked[-1]["parallel_tool_calls"] is False


def test_a_refused_effort_is_left_out_until_it_changes(serve: Callable[..., Scripted]) -> None:
    refusal = refusing(400, {"error": {"message": "reasoning_effort: 'xhigh' is not supported"}})
    server = serve(refusal, saying("Yes."))
    conversation = talk(server)
    conversation.effort = "xhigh"
    conversation.rewrite("", [])
    for turn in (1, 2):
        assert spoken(all_of(conversation.reply("Hello", turn))) == "Yes."
    assert ["reasoning_effort" in one for one in server.asked] == [True, False, False]
    conversation.effort = "low"
    conversation.rewrite("", [])
    all_of(conversation.reply("Hello", 3))
    assert server.asked[-1]["reasoning_effort"] == "low"


def test_a_busy_server_is_asked_again_when_it_says_so(serve: Callable[..., Scripted]) -> None:
    server = serve(refusing(429, {}, Retry_After="1.5"), saying("Now."))
    begun = time.monotonic()
    assert spoken(all_of(talk(server).reply("Hello", 1))) == "Now."
    assert time.monotonic() - begun >= 1.5
    server.plays = [refusing(429, {}, Retry_After="60"), saying("Now.")]
    assert "left alone for 60 s" in failing(talk(server).reply("Hello", 1)).message


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_after_a_while(
    serve: Callable[..., Scripted], status: int
) -> None:
    told = {"error": {"message": "Rate limit reached, try again in 1s"}}
    after = {} if status == 429 else {"Retry_After": "0"}
    server = serve(refusing(status, told, **after), saying("Now."))
    assert spoken(all_of(talk(server).reply("Hello", 1))) == "Now."


def test_a_server_is_asked_until_it_has_loaded_its_model(serve: Callable[..., Scripted]) -> None:
    loading = refusing(503, {"error": {"code": 503, "message": "Loading model"}})
    server = serve(loading, loading, loading, loading, saying("Now."))
    items = all_of(talk(server).reply("Hello", 1))
    assert spoken(items) == "Now."
    assert [dict(item.facts) for item in items if not item.ids] == [{LOADS: 1}] * 2
    server.plays = [loading] * 9
    error = failing(talk(server, timeout_s=1.5).reply("Hello", 2))
    assert error.message.endswith("still loads its model: Loading model")


TOO_LONG = {"error": {"message": "This model's maximum context length is 2048 tokens."}}


def test_the_older_half_is_forgotten_where_the_history_does_not_fit(
    serve: Callable[..., Scripted],
) -> None:
    body = TOO_LONG
    server = serve(refusing(400, body), saying("Short."))
    conversation = talk(server)
    conversation.rewrite("Be kind.", [Past(f"Q{n}", (f"A{n}",)) for n in range(5)])
    assert spoken(all_of(conversation.reply("Now", 1))) == "Short."
    kept = [text for _, text in shown(server)]
    assert kept == ["Be kind.", "Q3", "A3", "Q4", "A4", "Now"]
    assert conversation.standing.exchanges == 2
    server = serve(refusing(400, body))
    conversation = talk(server)
    assert "does not fit" in failing(conversation.reply("Now", 1)).message
    assert len(server.asked) == 1


def test_a_reply_that_outgrows_the_context_keeps_what_was_said(
    serve: Callable[..., Scripted],
) -> None:
    server = serve(broken(delta("Well, it"), TOO_LONG))
    conversation = talk(server)
    conversation.rewrite("", [Past("Q1", ("A1",)), Past("Q2", ("A2",))])
    assert "does not fit" in failing(conversation.reply("Now", 1)).message
    assert len(server.asked) == 1 and conversation.standing.exchanges == 2
    assert conversation.heard(2) == "Well, it"


# ---- where it is, and what is said when it is started


def test_a_server_that_is_not_there_is_told_at_start(serve: Callable[..., Scripted]) -> None:
    with Scripted(saying("")) as gone:
        pass
    for server, told in (
        (gone, "does not answer: start it"),
        (serve(saying(""), models=refusing(200, b"<html>", "text/html")), "answers with text/html"),
        (serve(saying(""), models=refusing(401, {})), "wants a key"),
        (serve(saying(""), models=broken(b"{")), "broke off"),
    ):
        with pytest.raises(RequestError) as caught:
            openai(settings(server))
        assert told in caught.value.message and caught.value.hint
    # One that cannot list its models may well reply; a wrong address does neither.
    for status in (500, 501, 404, 405):
        server = serve(saying("Yes."), models=refusing(status, b"oops", "text/plain"))
        assert spoken(all_of(talk(server).reply("Hello", 1))) == "Yes."
    nowhere = refusing(404, b"", "text/plain")
    with pytest.raises(RequestError, match="no such address"):
        openai(settings(serve(nowhere, models=nowhere))).warm()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            "http://localhost:11434/v1",
            "Ollama at localhost:11434 does not answer: start it with",
        ),
        (
            "http://127.0.0.1:1234/v1",
            "LM Studio at 127.0.0.1:1234 does not answer: start it with",
        ),
        ("http://127.0.0.1:8080/v1", "127.0.0.1:8080 does not answer: start it"),
        ("http://192.168.1.5:11434/v1", "Ollama at 192.168.1.5:11434 does not answer"),
        ("https://api.openai.com/v1", "api.openai.com does not answer"),
    ],
)
def test_a_server_that_does_not_answer_is_called_by_its_name(url: str, told: str) -> None:
    failure = unreachable(address(url, {}), OSError())
    assert failure.message.startswith(told) and failure.kind == "lost"
    assert ("start it" in failure.message) == ("--llm-server none" in failure.hint)


def test_a_name_that_nobody_has_is_told(serve: Callable[..., Scripted]) -> None:
    with pytest.raises(RequestError, match="no host of that name"):
        openai(settings(serve(saying("")), base_url="http://nosuch.invalid/v1"))


def test_nothing_is_fetched_for_a_model_that_is_elsewhere(serve: Callable[..., Scripted]) -> None:
    there = settings(serve(saying("")), target="not/a-model-of-the-hub")
    prepare(Config(llm=there))
    with pytest.raises(ConfigError, match=r"llm\.base_url is set"):
        prepare(Config(llm=replace(there, engine="speculative")))
    assert "llm a-model-of-the-hub at 127.0.0.1:" in engine_names(Config(llm=there))


def test_decoding_is_measured_where_it_happens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "llm", "--llm.engine", "openai", "--llm.base-url", "http://x/v1"]) == 2
    assert "measures how models decode in this process" in capsys.readouterr().err


def test_settings_that_do_not_go_together_are_told(serve: Callable[..., Scripted]) -> None:
    server = serve(saying(""), models=("a", "b"))
    for changes, told, hint in (
        ({"base_url": ""}, "llm.base_url is not set", "11434"),
        ({"draft": "ngram"}, "llm.draft is ngram", "docs/engines.md"),
        ({"target": "starter"}, "must name a model", "it has: a, b"),
    ):
        with pytest.raises(ConfigError) as caught:
            openai(settings(server, **changes))
        assert told in caught.value.message and hint in caught.value.hint


@pytest.mark.parametrize(
    ("url", "metered"),
    [
        ("http://localhost:11434/v1", False),
        ("http://127.0.0.1:8080/v1", False),
        ("http://[::1]:8080/v1/", False),
        ("http://192.168.1.7:8000/v1", False),
        ("http://workstation:8000/v1", False),
        ("http://box.local/v1", False),
        ("https://api.openai.com/v1", True),
        ("https://8.8.8.8/v1", True),
    ],
)
def test_a_model_far_away_may_have_to_be_paid_for(url: str, metered: bool) -> None:
    assert address(url, {}).metered is metered
    if not metered:
        key = {"VOICELOOP_LLM_KEY": KEY}
        assert address(url.replace("http:", "https:"), key).metered


def test_a_key_goes_to_the_host_that_it_was_set_for() -> None:
    both = {"OPENAI_API_KEY": "sk-openai", "VOICELOOP_LLM_KEY": "own"}
    openai_alone = {"OPENAI_API_KEY": "sk-openai"}
    assert address("https://api.openai.com/v1", openai_alone).key == "sk-openai"
    for other in (
        "https://api.openai.com.evil.example/v1",
        "https://openai.com/v1",
        "https://api.openai.com:444/v1",
        "http://localhost:1/v1",
    ):
        assert address(other, openai_alone).key == ""
        if not other.startswith("https://api.openai.com:"):
            assert address(other, both).key == "own"
    for url in ("http://example.com/v1", "http://192.168.1.7/v1", "http://api.openai.com/v1"):
        with pytest.raises(ConfigError, match="everybody on the way"):
            address(url, both)
    assert address("http://example.com/v1", openai_alone).key == ""


@pytest.mark.parametrize(
    ("url", "environ"),
    [
        ("localhost:8000", {}),
        ("ftp://host/v1", {}),
        ("http://", {}),
        ("http://[::1", {}),
        ("http://host:99999/v1", {}),
        (f"https://user:{KEY}@host/v1", {}),
        (f"https://host/v1?key={KEY}", {}),
        ("https://host/v1", {"VOICELOOP_LLM_KEY": f"{KEY}\n{KEY}"}),
        ("https://host/v1", {"VOICELOOP_LLM_KEY": f"{KEY}é"}),
    ],
)
def test_an_address_or_a_key_that_is_none_is_told(url: str, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        address(url, environ)
    assert KEY not in caught.value.message + caught.value.hint


def test_the_key_is_sent_and_told_to_nobody(
    serve: Callable[..., Scripted],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("VOICELOOP_LLM_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-host")
    told = {"error": {"message": f"what is {KEY} to me? {KEY}"}}
    other = serve(saying("Stolen."))
    elsewhere = refusing(307, told, Location=f"{other.url}/chat/completions")
    plays = (saying("Yes."), *(refusing(code, told) for code in (400, 401, 404, 429)), elsewhere)
    server = serve(*plays, broken({"error": told["error"]}))
    caplog.set_level(logging.DEBUG)
    llm = openai(settings(server))
    conversation = llm.conversation()
    assert spoken(all_of(conversation.reply("Hello", 1))) == "Yes."
    for turn in range(2, 8):
        error = failing(conversation.reply("Hello", turn))
        assert KEY not in f"{error!r} {error.message} {error.hint}"
    keys = {one.headers["Authorization"] for one in server.requests}
    assert keys == {f"Bearer {KEY}"}
    assert other.requests == []
    objects = (llm, llm._server, llm._server.where, conversation, llm._server.client)
    assert (
        KEY not in f"{caplog.text} {[vars(one) for one in objects if hasattr(one, '__dict__')]!r}"
    )
    assert KEY not in repr(objects)


def test_a_certificate_that_nobody_knows_is_told(
    serve: Callable[..., Scripted],
    tmp_path: Path,
    require_program: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    openssl, pem, key = require_program("openssl"), tmp_path / "c.pem", tmp_path / "k.pem"
    make = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext"
    name = "subjectAltName=IP:127.0.0.1"
    command = [openssl, *make.split(), name, "-keyout", key, "-out", pem]
    subprocess.run(command, check=True, capture_output=True)
    server = serve(saying("Yes."))
    server.secured(pem, key)
    with pytest.raises(RequestError) as caught:
        openai(settings(server))
    assert "cannot be reached safely" in caught.value.message
    assert "self-signed certificate" in caught.value.message
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    assert ssl.create_default_context().get_ca_certs()
    assert spoken(all_of(talk(server).reply("Hello", 1))) == "Yes."


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTPS_PROXY", "nosuch://user:secret@host"), ("SSL_CERT_FILE", "/nosuch/file.pem")],
)
def test_an_environment_that_cannot_be_used_is_told(
    serve: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        openai(settings(serve(saying("Yes."))))
    assert name in caught.value.hint and "secret" not in caught.value.message


def test_a_proxy_does_not_come_between_programs_of_one_machine(
    serve: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = serve(saying("Overheard.")), serve(saying("Yes."))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("VOICELOOP_LLM_KEY", KEY)
    assert spoken(all_of(talk(server).reply("Hello", 1))) == "Yes."
    assert proxy.requests == []


def test_a_model_elsewhere_is_asked_to_speak_unless_it_is_told_otherwise(
    serve: Callable[..., Scripted],
) -> None:
    server = serve(saying("Yes."))
    for given, told in (("auto", SPOKEN), ("Be rude.", "Be rude."), ("", "")):
        llm = openai(settings(server, system=given))
        assert llm.system == told
        conversation = llm.conversation()
        list(conversation.reply("Hello", 0))
        messages = server.asked[-1]["messages"]
        assert [one["content"] for one in messages if one["role"] == "system"] == [told] * bool(
            told
        )
