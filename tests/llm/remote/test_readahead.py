"""What servers are let read before the reply is asked for: when, what, and when no more."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.llm.remote.chatservers import Play, Request, Scripted, refusing, saying
from tests.llm.remote.localstandins import listing
from tests.llm.remote.test_remote import all_of, no_keys, no_threads, serve, talk
from tests.server.serving import until
from voiceloop.llm.remote.chatclient import OTHER_FORM, ends
from voiceloop.llm.remote.readahead import ENOUGH, WITHOUT
from voiceloop.llm.remote.remote import RemoteConversation
from voiceloop.types import Past

__all__ = ["no_keys", "no_threads", "serve"]

pytestmark = pytest.mark.real
Serve = Callable[..., Scripted]


@contextmanager
def talking(server: Scripted) -> Iterator[RemoteConversation]:
    """A conversation, closed in the end: what still runs then would hold its server."""
    conversation = talk(server)
    try:
        yield conversation
    finally:
        conversation.close()


def chats(server: Scripted) -> list[dict[str, Any]]:
    """What it was to read by requests for chat completions."""
    return [one.body for one in server.ahead if one.path.endswith("/chat/completions")]


def done(server: Scripted, count: int) -> None:
    until(lambda: len(chats(server)) >= count)


def test_the_history_and_then_the_words_are_read_as_the_reply_will_have_them(serve: Serve) -> None:
    server = serve(saying("Fine."))
    with talking(server) as conversation:
        conversation.rewrite("Be brief.", [Past("Hi", ("Hello.",))])
        all_of(conversation.prefill("", 1))
        done(server, 1)
        all_of(conversation.prefill("How are", 1))
        until(lambda: bool(all_of(conversation.prefill("How are", 1))) or len(chats(server)) > 1)
        all_of(conversation.reply("How are you?", 1))
        (asked,) = server.asked
        opening, words = chats(server)[0], chats(server)[1]
        assert opening["messages"][:-1] == asked["messages"][:-1]
        assert words["messages"][:-1] == asked["messages"][:-1]
        assert asked["messages"][-1]["content"].startswith(words["messages"][-1]["content"])
        same = {"model", "temperature", "stream", "stream_options"}
        assert all(
            {name: one[name] for name in same} == {name: asked[name] for name in same}
            for one in (opening, words)
        )
        assert opening["max_tokens"] == words["max_tokens"] == 1


def test_one_request_runs_at_a_time_and_ends_when_the_reply_is_asked_for(serve: Serve) -> None:
    gone, begun = threading.Event(), threading.Event()

    def slow(request: Request) -> None:
        if request.path.endswith("/chat/completions"):
            begun.set()
            assert request.closed_by_client()
            gone.set()
        else:
            request.status(404, {})

    server = serve(saying("Fine."))
    server.reads = slow
    with talking(server) as conversation:
        for words in ("How", "How are", "How are you"):
            all_of(conversation.prefill(words, 1))
            assert begun.wait(5)
        assert len(chats(server)) == 1
        all_of(conversation.reply("How are you?", 1))
        assert gone.wait(5)


@pytest.mark.parametrize("told", [refusing(400, {"error": "no"}), refusing(500, b"broken")])
def test_a_server_that_refuses_is_not_asked_again(told: Play, serve: Serve) -> None:
    server = serve(saying("Fine."))
    server.reads = told
    with talking(server) as conversation:
        all_of(conversation.prefill("How", 1))
        running = conversation._ahead._running
        assert running is not None
        until(running.done)
        count = len(chats(server))
        for turn in range(1, 4):
            all_of(conversation.reply("How are you?", turn))
            all_of(conversation.prefill("And", turn + 1))
        assert len(chats(server)) == count <= 2, "one, which may have been repeated"


def cached(tokens: int) -> Play:
    def play(request: Request) -> None:
        request.begin()
        usage = {"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": tokens}}
        chunk = {"choices": [{"delta": {"content": "Fine."}, "finish_reason": "stop"}]}
        request.send({**chunk, "usage": usage}, b"data: [DONE]\n\n")
        request.end()

    return play


@pytest.mark.parametrize("tokens", [0, 40])
def test_a_server_that_caches_nothing_is_not_asked_for_long(tokens: int, serve: Serve) -> None:
    server = serve(cached(tokens))
    with talking(server) as conversation:
        for turn in range(1, WITHOUT):
            before = len(chats(server))
            all_of(conversation.prefill("How", turn))
            if turn <= ENOUGH or tokens:
                done(server, before + 1)
            else:
                assert len(chats(server)) == before
            all_of(conversation.reply("How are you?", turn))
            conversation.heard(9)


def test_what_is_read_ahead_counts_as_read(serve: Serve) -> None:
    server = serve(cached(40))
    server.reads = cached(45)
    with talking(server) as conversation:
        all_of(conversation.prefill("How", 1))
        until(lambda: (running := conversation._ahead._running) is not None and running.done())
        all_of(conversation.reply("How are you?", 1))
        assert conversation.standing.tokens_read == 5 + 10


@pytest.mark.parametrize("later", [False, True])
def test_a_server_that_answers_later_for_it_is_let_read_no_more(later: bool, serve: Serve) -> None:
    server = serve(saying("Fine."))
    with talking(server) as conversation:
        ahead = conversation._ahead
        for turn in range(1, ENOUGH * WITHOUT + 1):
            all_of(conversation.prefill("How", turn))
            ahead.end()
            reads = turn % WITHOUT != 0
            assert ahead._reads == reads
            ahead.replied(0.4 if reads and later else 0.3, None)
        all_of(conversation.prefill("How", 1))
        assert ahead._reads != later


def test_nobody_who_pays_by_the_token_is_asked(serve: Serve, monkeypatch: Any) -> None:
    monkeypatch.setenv("VOICELOOP_LLM_KEY", "sk-paid")
    server = serve(saying("Fine."))
    with talking(server) as conversation:
        all_of(conversation.prefill("How", 1))
        all_of(conversation.reply("How are you?", 1))
        assert not server.ahead and len(server.asked) == 1


# ---- a server that tells probabilities


def likely(request: Request) -> None:
    """Answer as llama.cpp's server does: the turn is over with 0.9 after a last word `now`."""
    body: dict[str, Any] = request.server.owner.ahead[-1].body  # type: ignore[attr-defined]
    if request.path == "/apply-template":
        turns = "".join(f"<{one['role']}>{one['content']}</>" for one in body["messages"])
        request.status(200, {"prompt": f"{turns}<assistant>"})
    else:
        over = 0.9 if str(body["prompt"]).endswith("now") else 0.1
        tokens = {"": over / 2, "?": over / 2, " and": 1 - over}
        top = [{"token": text, "logprob": math.log(p)} for text, p in tokens.items()]
        told = {"completion_probabilities": [{"top_logprobs": top}], "timings": {"prompt_n": 7}}
        request.status(200, told)


def test_llama_cpps_server_tells_whether_the_turn_is_over(serve: Serve) -> None:
    server = serve(saying("Fine."))
    server.reads = likely
    with talking(server) as conversation:
        conversation.rewrite("Be brief.", [Past("Hi", ("Hello.",))])
        all_of(conversation.prefill("", 1))
        until(lambda: len(server.ahead) == 2)
        for words, over in (("How are you", 0.1), ("How are you now", 0.9)):
            until(lambda: bool(conversation._server.tells_ends))
            all_of(conversation.prefill(words, 1))
            assert conversation.standing.end_probability == pytest.approx(over)
        assert conversation.standing.tokens_read == 7 * 3
        prompts = [one.body["prompt"] for one in server.ahead if one.path == "/completion"]
        assert prompts[0].endswith("<user>") and prompts[-1].endswith("<user>How are you now")
        assert all(prompt.startswith("<system>Be brief.</><user>Hi</>") for prompt in prompts)
        all_of(conversation.reply("How are you now or then?", 1))
        assert conversation.standing.end_probability is None
        assert not chats(server)


def likely_to_vllm(request: Request) -> None:
    """Answer as vLLM does, which continues a last message if the request asks for that."""
    body: dict[str, Any] = request.server.owner.ahead[-1].body  # type: ignore[attr-defined]
    over = 0.9 if body["messages"][-1]["content"].endswith("now") else 0.1
    tokens = {"<|im_end|>": over / 2, "?": over / 2, " and": 1 - over}
    top = [{"token": text, "logprob": math.log(p), "bytes": [1]} for text, p in tokens.items()]
    told = {"content": [{"token": " and", "logprob": 0.0, "top_logprobs": top}]}
    usage = {"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 28}}
    choices = [{"message": {"content": " and"}, "logprobs": told}]
    request.status(200, {"choices": choices, "usage": usage})


def test_vllm_tells_whether_the_turn_is_over(serve: Serve) -> None:
    server = serve(saying("Fine."), models=refusing(200, listing(["small"], "vllm")))
    server.reads = likely_to_vllm
    with talking(server) as conversation:
        conversation.rewrite("Be brief.", [Past("Hi", ("Hello.",))])
        for words, over in (("How are you", 0.1), ("How are you now", 0.9)):
            all_of(conversation.prefill(words, 1))
            until(lambda: bool(conversation._server.tells_ends))
            all_of(conversation.prefill(words, 1))
            assert conversation.standing.end_probability == pytest.approx(over)
        assert conversation.standing.tokens_read in (6, 8), (
            "2 for each request that was not broken off"
        )
        all_of(conversation.reply("How are you now?", 1))
        (asked,) = server.asked
        for one in chats(server):
            assert one["messages"][:-1] == asked["messages"][:-1]
            assert one["continue_final_message"] and not one["add_generation_prompt"]
            assert one["max_tokens"] == 1 and not one["stream"] and "stream_options" not in one
        assert "continue_final_message" not in asked


@pytest.mark.parametrize("owner", ["sglang", "organization_owner"])
def test_only_vllm_is_asked_to_continue_a_message(owner: str, serve: Serve) -> None:
    server = serve(saying("Fine."), models=refusing(200, listing(["small"], owner)))
    with talking(server) as conversation:
        all_of(conversation.prefill("How are", 1))
        done(server, 1)
        assert not any("continue_final_message" in one for one in chats(server))
        assert conversation.standing.end_probability is None


@pytest.mark.parametrize(
    "answer", [{}, {"prompt": "x"}, {"prompt": 3}, [], {"error": "Unexpected endpoint"}]
)
def test_answers_of_another_form_are_those_of_another_server(answer: Any, serve: Serve) -> None:
    def other(request: Request) -> None:
        if request.path.endswith("/chat/completions"):
            saying("I")(request)
        else:
            request.status(200, answer)

    server = serve(saying("Fine."))
    server.reads = other
    with talking(server) as conversation:
        all_of(conversation.prefill("How", 1))
        done(server, 1)
        assert conversation._server.tells_ends is False
        assert conversation.standing.end_probability is None


def token(text: str, logprob: float, **more: object) -> dict[str, object]:
    return {"token": text, "logprob": logprob, **more}


def test_what_ends_a_turn_is_a_mark_or_a_token_without_text() -> None:
    over = [("", 0.25), ("<|im_end|>", 0.125), ("?", 0.0625), (".", 0.03125), ("?\n", 0.015625)]
    others = [(" and", 0.2), (".com", 0.1), (" .", 0.05), (" <", 0.05), ("<3", 0.05)]
    half = token("", math.log(0.05), bytes=[226])  # a piece of a character
    found = ends([*(token(text, math.log(p)) for text, p in over + others), half])
    assert found == pytest.approx(sum(p for _, p in over))


@pytest.mark.parametrize("wrong", ["x", None, [], math.nan])
def test_what_is_no_probability_is_of_another_form(wrong: Any) -> None:
    with pytest.raises(OTHER_FORM):
        ends([token("?", wrong)])
    assert ends([token("?", 1e308)]) == 1


def test_a_server_that_tells_nonsense_later_breaks_nothing(serve: Serve) -> None:
    server = serve(saying("Fine."))
    server.reads = likely
    with talking(server) as conversation:
        all_of(conversation.prefill("How are you", 1))
        until(lambda: bool(conversation._server.tells_ends))

        def nonsense(request: Request) -> None:
            if request.path.endswith("/chat/completions"):
                saying("I")(request)
            else:
                request.status(200, [{"prompt": 1}])

        server.reads = nonsense
        all_of(conversation.prefill("How are you now", 1))
        assert conversation.standing.end_probability is None
        assert conversation._server.tells_ends is False
