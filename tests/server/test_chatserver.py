"""What clients are told of a language model on another server, over real sockets to that server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.llm.chatservers import DONE, Request, Scripted, delta, saying
from tests.llm.test_remote import no_keys, no_threads, serve, settings
from tests.server.test_calls import client_of
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
