"""Many sessions on one server: the language model reads of each only what is new."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.server.serving import Client, Serving, serving

pytestmark = pytest.mark.real

SESSIONS = 8
QUESTIONS = ("What is the capital of France?", "What is 7 times 8?", "And of Spain?", "Thank you.")


def tokens_read(client: Client, text: str) -> float:
    """What the language model read for a written question."""
    since = len(client.events)
    client.write(text)
    return client.wait("voiceloop.trace", since=since)["trace"]["counters"]["tokens_read"]


def read_by_all(server: Serving) -> float:
    """Tokens that the server has counted."""
    return server.metrics()['voiceloop_tokens_total{kind="read"}']


def test_eight_sessions_that_speak_in_turn_read_only_their_new_tokens(tmp_path: Path) -> None:
    options = ("--server.max-sessions", str(SESSIONS))
    options += ("--server.max-sessions-per-key", str(SESSIONS), "--llm.skills", "none")
    with serving(tmp_path, *options) as server, ExitStack() as stack:
        alone = stack.enter_context(Client(server.url))
        alone.update(output_modalities=["text"], voiceloop={"traces": True})
        expected = [tokens_read(alone, question) for question in QUESTIONS]
        # Of a later turn: the question, what stands around it, and the reply's last token.
        assert max(expected[1:]) < 30
        clients = [stack.enter_context(Client(server.url)) for _ in range(SESSIONS - 1)]
        for client in clients:
            client.update(output_modalities=["text"], voiceloop={"traces": True})
        for question, tokens in zip(QUESTIONS, expected, strict=True):
            for client in clients:
                assert tokens_read(client, question) == tokens
        again = tokens_read(alone, QUESTIONS[1])  # after 28 turns of the others
        assert again < 30
        assert read_by_all(server) == SESSIONS * sum(expected) + again
        assert "Traceback" not in server.log.read_text()
