"""Sessions that tell what the user says and nothing else: the real server over real sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.behaviour.observed import COMPLETED, EVENTS_OF_A_TURN
from tests.server.serving import (
    READS_FIGURES,
    Client,
    Event,
    Serving,
    kinds,
    serving,
    spoken_question,
    to_wire,
)

pytestmark = pytest.mark.real

CAPITAL = "What is the capital of France?"
SILENCE = bytes(2 * 24 * 1500)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("transcribing"), "--server.resume-s", "5") as server:
        yield server
        log = [json.loads(line) for line in server.log.read_text().splitlines()]
        assert not [line for line in log if "exception" in line]


@pytest.fixture
def client(server: Serving) -> Iterator[Client]:
    """Somebody who comes for words alone."""
    with Client(f"{server.url}?intent=transcription") as client:
        yield client


@pytest.fixture(scope="module")
def question() -> bytes:
    return to_wire(spoken_question(CAPITAL), 16_000)


def update(client: Client, kind: str = "transcription", **session: object) -> Event:
    since = len(client.events)
    client.send("session.update", session={"type": kind, **session}, event_id="mine")
    return client.wait("session.updated", since=since)["session"]


def tokens(server: Serving) -> dict[str, float]:
    """All that language models have read and written."""
    figures = server.metrics()
    counted = {name: figures[name] for name in figures if name.startswith("voiceloop_tokens_total")}
    assert counted
    return counted


@READS_FIGURES
def test_what_is_said_is_told_and_nothing_replies(
    client: Client, server: Serving, question: bytes
) -> None:
    before = tokens(server)
    for _ in range(3):
        since = len(client.events)
        client.append(question + SILENCE)
        said = client.wait(COMPLETED, since=since)
        assert said["transcript"] == CAPITAL
        assert 1 < said["usage"]["seconds"] < 5
    told = [kind for kind in kinds(client.events) if not kind.startswith("session.")]
    assert told == 3 * EVENTS_OF_A_TURN
    assert tokens(server) == before


@pytest.mark.parametrize("by", ["address", "update"])
def test_no_response_can_be_asked_for(server: Serving, by: str) -> None:
    query = "?intent=transcription&model=whisper-1" if by == "address" else ""
    with Client(f"{server.url}{query}") as client:
        if by == "update":
            update(client)
        for response in ({}, {"output_modalities": ["text"]}, {"conversation": "none"}):
            since = len(client.events)
            client.send("response.create", response=response, event_id="asked")
            error = client.wait("error", since=since)["error"]
            assert (error["code"], error["param"]) == ("unsupported_event", "type")
            assert error["event_id"] == "asked"
            assert error["message"] == (
                "a session of type `transcription` gives no responses; "
                "open another connection for a conversation"
            )
        client.send("response.cancel")
        client.wait("error", where=lambda one: one["error"]["code"] == "response_cancel_not_active")
        update(client)
        assert not [one for one in client.events if one["type"].startswith("response.")]


def test_turns_that_the_client_ends_are_told(client: Client, question: bytes) -> None:
    assert update(client, audio={"input": {"turn_detection": None}})["audio"]["input"][
        "turn_detection"
    ] is None  # fmt: skip
    client.append(bytes(2000))
    client.send("input_audio_buffer.commit")
    assert client.wait("error")["error"]["code"] == "input_audio_buffer_commit_empty"
    for _ in range(2):
        since = len(client.events)
        client.append(question)
        client.send("input_audio_buffer.commit")
        assert client.wait(COMPLETED, since=since)["transcript"] == CAPITAL
    detected = update(client, audio={"input": {"turn_detection": {"type": "semantic_vad"}}})
    assert not detected["audio"]["input"]["turn_detection"]["create_response"]
    since = len(client.events)
    client.append(question + SILENCE)
    assert client.wait(COMPLETED, since=since)["transcript"] == CAPITAL
    assert kinds(client.events[since:]) == EVENTS_OF_A_TURN


OF_RESPONSES: dict[str, Any] = {
    "session.instructions": {"instructions": "Reply."},
    "session.tools": {"tools": [{"type": "function", "name": "look"}]},
    "session.tool_choice": {"tool_choice": "none"},
    "session.output_modalities": {"output_modalities": ["text"]},
    "session.max_output_tokens": {"max_output_tokens": 9},
    "session.audio.output": {"audio": {"output": {"voice": "alloy"}, "input": {}}},
}


@pytest.mark.parametrize("param", OF_RESPONSES)
def test_what_only_responses_have_is_refused_by_its_key(client: Client, param: str) -> None:
    holds = update(client, **OF_RESPONSES[param], voiceloop={"tentative_words": True})
    assert holds["voiceloop"]["tentative_words"], "the rest is taken"
    (event,) = client.all("error")
    error = event["error"]
    assert (error["code"], error["param"]) == ("unsupported_parameter", param)
    assert error["event_id"] == "mine" and "gives no responses" in error["message"]


@pytest.mark.parametrize("kind", ["realtime", "transcription"])
def test_the_type_is_fixed_once_it_has_been_set(server: Serving, kind: str) -> None:
    other = {"realtime": "transcription", "transcription": "realtime"}[kind]
    with Client(server.url) as client:
        client.send("session.update", session={"voiceloop": {"traces": True}})
        assert client.wait("session.updated")["session"]["type"] == "realtime"
        assert update(client, kind)["type"] == kind
        assert update(client, kind)["type"] == kind and not client.all("error")
        holds = update(client, other, voiceloop={"pause": True})
        assert holds["type"] == kind and holds["voiceloop"]["pause"]
        error = client.wait("error")["error"]
        assert error["param"] == "session.type" and "cannot change" in error["message"]
        client.send("session.update", session={})
        client.wait("session.updated", where=lambda one: one["session"]["type"] == kind)
