"""What clients are told of a language model on another server, over real sockets to that server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.llm.remote.chatservers import DONE, Request, Scripted, delta, refusing, saying
from tests.llm.remote.test_remote import no_keys, no_threads, serve, settings
from tests.server.session.test_calls import client_of
from voiceloop.llm.remote.remote import openai

__all__ = ["no_keys", "no_threads", "serve"]

pytestmark = pytest.mark.real

FILTERED = {"choices": [{"delta": {}, "finish_reason": "content_filter"}]}


@pytest.mark.parametrize("words", [(), ("I ", "would ")])
@pytest.mark.parametrize("modality", ["text", "audio"])
async def test_a_reply_that_is_filtered_is_incomplete(
    serve: Callable[..., Scripted], words: tuple[str, ...], modality: str
) -> None:
    def play(request: Request) -> None:
        request.begin()
        request.send(*map(delta, words), FILTERED, DONE)
        request.end()

    server = serve(play, saying("Yes."))
    async with client_of(openai(settings(server))) as one:
        one.write("Say it")
        done = await one.respond(output_modalities=[modality])
        assert done["status"] == "incomplete"
        assert done["status_details"] == {
            "type": "incomplete",
            "reason": "content_filter",
            "error": None,
        }
        for item in done["output"]:
            assert item["status"] == "incomplete"
            part = item["content"][0]
            heard = part.get("text", part.get("transcript"))
            assert heard.split() == "".join(words).split() or not words
        one.write("And now?")
        assert (await one.respond())["status"] == "completed"
        assert len(server.asked) == 2, "it is not asked again"


@pytest.mark.parametrize(
    ("modality", "told"), [("audio", "One moment, the model is loading. Now."), ("text", "Now.")]
)
async def test_who_waits_for_a_model_to_load_is_told_and_the_history_is_not(
    serve: Callable[..., Scripted], modality: str, told: str
) -> None:
    loading = refusing(503, {"error": {"code": 503, "message": "Loading model"}})
    server = serve(*[loading] * 4, saying("Now."))
    async with client_of(openai(settings(server))) as one:
        one.write("Hello")
        done = await one.respond(output_modalities=[modality])
        assert done["status"] == "completed"
        (message,) = done["output"]
        (part,) = message["content"]
        assert part.get("text", part.get("transcript")) == told
        one.write("And then?")
        await one.respond()
        roles = [(one["role"], one["content"]) for one in server.asked[-1]["messages"]]
        assert roles[-3:] == [("user", "Hello"), ("assistant", "Now."), ("user", "And then?")]
