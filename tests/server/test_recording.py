"""Recordings of the real server, with the starter models."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.server.serving import RATE, Client, serving, spoken_question, to_wire, until
from voiceloop.recording.format import SPEAKER

pytestmark = pytest.mark.real

CAPITAL = "What is the capital of France?"
LONG = "Why is the sky blue?"
KEY = "a-key-that-nobody-may-see-0123456789"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three sessions: one spoken, with an interruption, one written, with another history, and one
    that was cut off when the server was killed."""
    parent = tmp_path_factory.mktemp("server")
    key = {"additional_headers": {"Authorization": f"Bearer {KEY}"}}
    speech = {text: to_wire(spoken_question(text), 16_000) for text in (CAPITAL, LONG)}
    record = parent / "recordings"
    with serving(parent, "--record", str(record), VOICELOOP_API_KEY=KEY) as server:
        with Client(server.url, **key) as client:
            client.wait("session.created")
            client.say(speech[LONG], pause_s=1.0)
            client.wait("response.output_audio.delta")
            client.say(bytes(RATE) + speech[CAPITAL], pause_s=4.0)
            client.wait("response.done", where=lambda event: "Paris" in str(event))
        with Client(server.url, **key) as client:
            client.wait("session.created")
            client.update(instructions="Answer briefly.", output_modalities=["text"])
            client.write(CAPITAL)
            since = len(client.events)
            client.create(LONG)
            client.send("response.create")
            client.send("response.cancel")
            client.wait("response.done", since=since)
        with Client(server.url, **key) as client:
            client.wait("session.created")
            client.create(CAPITAL)
            client.send("response.create")
            until(lambda: len([*record.glob(f"*/{SPEAKER}")]) == 2)  # the written one has none
            server.process.kill()
            server.process.wait()
    return sorted(record.iterdir())


def test_each_session_has_its_own(recordings: list[Path]) -> None:
    assert len(recordings) == 3
    assert {stat.S_IMODE(one.stat().st_mode) for one in recordings} == {0o700}


def test_they_have_no_key(recordings: list[Path]) -> None:
    for file in (file for one in recordings for file in one.iterdir()):
        assert KEY.encode() not in file.read_bytes(), file
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
