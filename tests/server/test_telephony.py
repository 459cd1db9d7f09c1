"""Conversations in G.711, as telephones carry them, with the real server over real sockets."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile as sf

from tests.server.serving import Client, Event, Serving, serving, spoken_question, until
from voiceloop.audio.frames import Resampler
from voiceloop.audio.g711 import decode, encode
from voiceloop.cli.main import main
from voiceloop.types import Pcm

pytestmark = pytest.mark.real

CAPITAL = "What is the capital of France?"
LONG = "Why is the sky blue?"
RATES = {"audio/pcm": 24_000, "audio/pcmu": 8_000, "audio/pcma": 8_000}
TELEPHONES = ["audio/pcmu", "audio/pcma"]
HEADER = struct.Struct("<24sI")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("telephony"), "--server.resume-s", "5") as server:
        yield server


@pytest.fixture
def client(server: Serving) -> Iterator[Client]:
    with Client(server.url) as client:
        client.wait("session.created")
        yield client


def said(pcm: Pcm, kind: str) -> bytes:
    """Speech at 16 kHz as it is sent."""
    resampler = Resampler(16_000, RATES[kind])
    pcm = np.concatenate((resampler.feed(pcm), resampler.flush()))
    integers = (np.clip(pcm, -1, 1) * 32767).astype(np.int16)
    return integers.tobytes() if kind == "audio/pcm" else encode(integers, law(kind))


def law(kind: str) -> Any:
    return {"audio/pcmu": "mu", "audio/pcma": "a"}[kind]


def quiet(kind: str, ms: int) -> bytes:
    return said(np.zeros(16 * ms, np.float32), kind)


def heard(client: Client, item_id: str, since: int = 0) -> bytes:
    deltas = [e for e in client.events[since:] if e["type"] == "response.output_audio.delta"]
    return b"".join(base64.b64decode(e["delta"]) for e in deltas if e["item_id"] == item_id)


def formats(into: str, out: str, **more: object) -> dict[str, Any]:
    return {
        "audio": {
            "input": {"format": {"type": into}, "transcription": {}, **more},
            "output": {"format": {"type": out}},
        }
    }


def understood(audio: bytes, kind: str, path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    pcm = np.frombuffer(audio, "<i2") if kind == "audio/pcm" else decode(audio, law(kind))
    sf.write(path, pcm, RATES[kind])
    capsys.readouterr()
    assert main(["transcribe", "--json", str(path)]) == 0
    return json.loads(capsys.readouterr().out)["text"].lower()


def updated(client: Client, **session: object) -> Event:
    since = len(client.events)
    client.send("session.update", session={"type": "realtime", **session})
    return client.wait("session.updated", since=since)["session"]


def told(session: Event) -> tuple[Event, Event]:
    return session["audio"]["input"]["format"], session["audio"]["output"]["format"]


@pytest.mark.parametrize(("into", "out"), [*product(TELEPHONES, TELEPHONES), *(
    ("audio/pcm", "audio/pcmu"), ("audio/pcma", "audio/pcm"),
)])  # fmt: skip
def test_a_caller_is_understood_and_answered_in_the_formats_of_each_way(
    client: Client, into: str, out: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    holds = client.update(**formats(into, out))
    assert [one["type"] for one in told(holds)] == [into, out]
    client.append(quiet(into, 300) + said(spoken_question(CAPITAL), into) + quiet(into, 1500))
    transcript = client.wait("conversation.item.input_audio_transcription.completed")
    assert transcript["transcript"] == CAPITAL
    response = client.wait("response.done")["response"]
    assert response["audio"]["output"]["format"]["type"] == out
    (message,) = response["output"]
    audio = heard(client, message["id"])
    assert "paris" in understood(audio, out, tmp_path / "answer.wav", capsys)
    started = client.wait("input_audio_buffer.speech_started")["audio_start_ms"]
    stopped = client.wait("input_audio_buffer.speech_stopped")["audio_end_ms"]
    speech_ms = len(spoken_question(CAPITAL)) / 16
    assert 0 <= started <= 400
    assert 300 + speech_ms / 2 < stopped < 300 + speech_ms + 1500


def test_a_format_may_change_between_turns_and_holds_from_then_on(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for into, out in (("audio/pcmu", "audio/pcma"), ("audio/pcm", "audio/pcmu")):
        client.update(**formats(into, out))
        since = len(client.events)
        client.append(quiet(into, 300) + said(spoken_question(CAPITAL), into) + quiet(into, 1500))
        done = client.wait("response.done", since=since)["response"]
        completed = "conversation.item.input_audio_transcription.completed"
        assert client.wait(completed, since=since)["transcript"] == CAPITAL
        audio = heard(client, done["output"][0]["id"], since)
        assert "paris" in understood(audio, out, tmp_path / "answer.wav", capsys)


@pytest.mark.parametrize("kind", TELEPHONES)
def test_what_is_cut_off_is_counted_in_milliseconds_of_the_format(
    client: Client, kind: str
) -> None:
    client.update(**formats("audio/pcm", kind))
    client.create(LONG)
    client.send("response.create")
    item = client.wait("response.output_audio.delta")["item_id"]
    until(lambda: len(heard(client, item)) >= 8 * 1000)
    client.send("response.cancel")
    client.wait("response.done")
    sent_ms = len(heard(client, item)) // 8
    for asked, holds in ((10**6, sent_ms), (900, 900)):
        since, fields = len(client.events), {"item_id": item, "content_index": 0}
        client.send("conversation.item.truncate", audio_end_ms=asked, **fields)
        assert client.wait("conversation.item.truncated", since=since)["audio_end_ms"] == holds
    client.send("conversation.item.retrieve", item_id=item)
    (part,) = client.wait("conversation.item.retrieved")["item"]["content"]
    assert 0 < len(part["transcript"]) < 40


@pytest.mark.parametrize("kind", RATES)
def test_a_tenth_of_a_second_is_the_shortest_turn_in_every_format(
    client: Client, kind: str
) -> None:
    client.update(**formats(kind, "audio/pcm", turn_detection=None))
    for ms, code in ((98, "input_audio_buffer_commit_empty"), (100, None)):
        client.send("input_audio_buffer.clear")
        client.append(quiet(kind, ms))
        since = len(client.events)
        client.send("input_audio_buffer.commit", event_id=f"after {ms}")
        if code:
            error = client.wait("error", since=since)["error"]
            assert (error["code"], error["event_id"]) == (code, f"after {ms}")
    client.append(quiet(kind, 300))
    client.send("input_audio_buffer.commit")
    client.update()
    assert len(client.all("error")) == 1


def test_half_a_sample_is_refused_where_samples_have_two_bytes(client: Client) -> None:
    client.append(bytes(3))
    client.send("input_audio_buffer.append", audio=base64.b64encode(bytes(1)).decode())
    client.append(bytes(5), binary=True)
    until(lambda: len(client.all("error")) == 3)
    for event, size in zip(client.all("error"), ("3 bytes", "1 byte,", "5 bytes"), strict=True):
        error = event["error"]
        assert (error["code"], error["param"]) == ("invalid_value", "audio")
        assert size in error["message"] and "PCM16" in error["message"]
    client.update(**formats("audio/pcma", "audio/pcm"))
    client.append(b"\xd5" * 3)
    client.append(b"\xd5" * 5, binary=True)
    client.update()
    assert len(client.all("error")) == 3


REFUSALS: list[tuple[object, str, str]] = [
    ({"type": "audio/opus"}, "format.type", '"audio/pcm" or "audio/pcmu" or "audio/pcma"'),
    ({"type": "audio/pcmU"}, "format.type", "did you mean 'audio/pcmu'?"),
    ({"type": "audio/pcm", "rate": 8000}, "format.rate", "must be 24000"),
    ({"type": "audio/pcmu", "channels": 2}, "format.channels", "is not a parameter"),
    ({"rate": 24000}, "format.type", "is missing"),
    ("g711_ulaw", "format", "must be an object"),
    ({"type": "audio/pcma", "rate": 8000}, "", ""),
    (None, "", ""),
]


@pytest.mark.parametrize("way", ["input", "output"])
@pytest.mark.parametrize(("asked", "param", "says"), REFUSALS)
def test_a_format_that_there_is_not_is_refused_by_its_key(
    client: Client, way: str, asked: object, param: str, says: str
) -> None:
    before = updated(client, **formats("audio/pcma", "audio/pcma"))
    holds = updated(client, audio={way: {"format": asked}}, max_output_tokens=9)
    assert holds["max_output_tokens"] == 9, "the rest is taken"
    if not param:
        assert not client.all("error") and told(holds) == told(before)
        return
    error = client.wait("error")["error"]
    assert error["param"] == f"session.audio.{way}.{param}" and says in error["message"]
