"""Conversations with a language model that another process serves, and may cease to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llm.remote.chatservers import Real, real
from tests.server.serving import Client, Serving, serving, until
from tests.server.test_conversation import CAPITAL, LONG, TRANSCRIBED, client, speech
from voiceloop.bundled import bundled

__all__ = ["client", "speech"]

pytestmark = pytest.mark.real

STARTER = str(bundled("models/starter/llm-target"))


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with real(tmp_path_factory.mktemp("transformers")) as thinker:
        yield thinker


@pytest.fixture(scope="module")
def server(thinker: Real, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    flags = ["--llm.engine", "openai", "--llm.base-url", thinker.url, "--llm.target", STARTER]
    flags += ["--llm.system", ""]
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, "--server.resume-s", "3", *flags) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def test_the_model_is_killed_in_a_response_and_comes_back(
    client: Client, thinker: Real, speech: dict[str, bytes]
) -> None:
    client.update(**TRANSCRIBED)
    client.say(speech[LONG], pause_s=0.8)
    client.wait("response.output_audio.delta")
    thinker.kill()
    since = 0
    done = client.wait("response.done", since=since)["response"]
    if done["status"] == "failed":  # else all of it had come
        assert "broke off" in json.dumps(done["status_details"])
    since = len(client.events)
    client.say(speech[CAPITAL], pause_s=0.8)
    done = client.wait("response.done", since=since)["response"]
    assert done["status"] == "failed"
    assert "does not answer" in json.dumps(done["status_details"])
    assert [one["type"] for one in client.events[since:]].count("response.output_audio.delta")
    thinker.start()
    since = len(client.events)
    client.say(speech[CAPITAL], pause_s=0.8)
    response = client.wait("response.done", since=since)["response"]
    assert response["status"] == "completed" and "Paris" in json.dumps(response["output"])


def test_cancelled_responses_stop_the_model(client: Client, thinker: Real) -> None:
    before = len(thinker.stopped())
    client.update(output_modalities=["text"])
    client.create("Tell me a short story.")
    client.send("response.create")
    client.wait("response.output_text.delta")
    client.send("response.cancel")
    assert client.wait("response.done")["response"]["status"] == "cancelled"
    until(lambda: len(thinker.stopped()) > before)


def test_the_key_is_in_no_log(tmp_path: Path, thinker: Real) -> None:
    key = "sk-secret-of-the-environment"
    flags = ["--llm.engine", "openai", "--llm.base-url", thinker.url, "--llm.target", STARTER]
    flags += ["--llm.system", ""]
    with serving(tmp_path, *flags, VOICELOOP_LLM_KEY=key) as server:
        with Client(server.url) as client:
            client.update(output_modalities=["text"])
            assert "Paris" in json.dumps(client.write(CAPITAL)["output"])
        server.stop()
        assert key not in server.log.read_text()
