"""Conversations with the real server and the starter models, over real sockets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from tests.server.serving import (
    RATE,
    Client,
    Event,
    Serving,
    kinds,
    serving,
    spoken_question,
    to_wire,
    until,
)
from voiceloop.bundled import STARTER_HEARS
from voiceloop.cli.main import main
from voiceloop.errors import DeviceError
from voiceloop.server.port import Binding, check_port

pytestmark = pytest.mark.real

CAPITAL = "What is the capital of France?"
LONG = "Why is the sky blue?"
TRANSCRIBED = {"audio": {"input": {"transcription": {"model": "any"}}}}
PUSHED = {"audio": {"input": {"transcription": {"model": "any"}, "turn_detection": None}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("server"), "--server.resume-s", "3") as server:
        yield server


@pytest.fixture
def client(server: Serving) -> Iterator[Client]:
    with Client(server.url) as client:
        assert client.wait("session.created")["session"]["type"] == "realtime"
        yield client


@pytest.fixture(scope="module")
def speech() -> dict[str, bytes]:
    return {text: to_wire(spoken_question(text), 16_000) for text in (CAPITAL, LONG)}


def recognised(path: Path, pcm: np.ndarray, capsys: pytest.CaptureFixture[str]) -> str:
    sf.write(path, pcm, RATE)
    capsys.readouterr()
    assert main(["transcribe", "--json", str(path)]) == 0
    return json.loads(capsys.readouterr().out)["text"]


@pytest.mark.not_over("ray", why="Ray starts the servers, and has their output")
def test_whoever_starts_the_server_is_told_what_the_starter_cannot_do(server: Serving) -> None:
    assert server.process.stdout is not None
    assert STARTER_HEARS in server.process.stdout.readline()


@pytest.mark.not_over("ray", why="Ray has a port of its own")
def test_whoever_starts_it_twice_is_told_that_it_runs(server: Serving) -> None:
    with pytest.raises(DeviceError) as caught:
        check_port(Binding("localhost", server.port))
    assert caught.value.message.endswith("of localhost: Address already in use")
    assert (
        f"voiceloop may already run: open http://localhost:{server.port}, or " in caught.value.hint
    )


def refused(client: Client, **session: object) -> dict[str, str]:
    """What is said against an update of the session, of which the rest is done."""
    since = len(client.events)
    client.send("session.update", session={"type": "realtime", **session})
    client.wait("session.updated", since=since)
    return client.wait("error", since=since)["error"]


def updated(client: Client, **session: object) -> Event:
    """The session after another update."""
    since = len(client.events)
    client.send("session.update", session={"type": "realtime", **session})
    return client.wait("session.updated", since=since)["session"]


def voiced(name: str) -> dict[str, object]:
    return {"output": {"voice": name}}


def test_a_session_speaks_in_the_voice_that_it_asks_for_and_may_ask_for_another(
    server: Serving,
) -> None:
    lengths: dict[str, int] = {}
    for voice in ("", "alloy", "de"):
        with Client(server.url) as client:
            created = client.wait("session.created")["session"]
            assert created["audio"]["output"]["voice"] == "en-us"
            offered = {one.pop("name"): one for one in created["voiceloop"]["voices"]}
            german = {"label": "German", "language": "de", "language_name": "German"}
            assert offered["de"] == german and "en-us" in offered
            wrong = refused(client, audio=voiced("nosuch"), max_output_tokens=200)
            assert wrong["param"] == "session.audio.output.voice"
            assert "'nosuch'" in wrong["message"] and "en-us" in wrong["message"]
            holds = updated(client, audio=voiced(voice)) if voice else updated(client)
            assert holds["audio"]["output"]["voice"] == ("de" if voice == "de" else "en-us")
            assert holds["max_output_tokens"] == 200, "all but the voice was taken"
            (message,) = client.write(CAPITAL)["output"]
            lengths[voice] = len(client.heard(message["id"]))
            # In the middle of a conversation, for all that follows.
            other = "de" if voice != "de" else "en-us"
            assert updated(client, audio=voiced(other))["audio"]["output"]["voice"] == other
            (message,) = client.write(CAPITAL)["output"]
            lengths[f"{voice}, then {other}"] = len(client.heard(message["id"]))
            since = len(client.events)
            client.send("response.create", response={"audio": voiced("nosuch")})
            assert "'nosuch'" in client.wait("error", since=since)["error"]["message"]
    assert lengths["alloy"] == pytest.approx(lengths[""], rel=0.03)
    assert abs(lengths["de"] / lengths[""] - 1) > 0.06
    assert lengths[", then de"] == pytest.approx(lengths["de"], rel=0.03)
    assert lengths["de, then en-us"] == pytest.approx(lengths[""], rel=0.03)


def test_a_spoken_question_is_answered_in_the_documented_order(
    client: Client, speech: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client.update(**TRANSCRIBED)
    begun = len(client.events)
    client.say(speech[CAPITAL])
    done = client.wait("response.done", since=begun)["response"]
    assert done["status"] == "completed"
    (message,) = done["output"]
    assert "Paris" in message["content"][0]["transcript"]
    user = client.wait("conversation.item.input_audio_transcription.completed")
    assert user["transcript"] == CAPITAL
    order = kinds(client.events[begun:])
    expected = [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    places = [order.index(kind) for kind in expected]
    assert places == sorted(places), order
    heard = recognised(tmp_path / "answer.wav", client.heard(message["id"]), capsys)
    assert "paris" in heard.lower()


def test_a_response_that_would_be_too_long_is_spoken_as_far_as_it_is_written(
    client: Client, speech: dict[str, bytes]
) -> None:
    client.update(max_output_tokens=12)
    client.say(speech[LONG])
    spoken_to = client.wait("response.done")["response"]
    typed = client.write(LONG)
    client.send("session.update", session={"type": "realtime", "max_output_tokens": "inf"})
    since = len(client.events)
    client.create(LONG)
    client.send("response.create", response={"max_output_tokens": 12})
    asked_for = client.wait("response.done", since=since)["response"]
    whole = client.write(CAPITAL)
    for response in (spoken_to, typed, asked_for):
        assert response["status"] == "incomplete"
        assert response["status_details"]["reason"] == "max_output_tokens"
        assert 12 <= response["usage"]["output_token_details"]["text_tokens"] < 12 + 20
        (message,) = response["output"]
        text = message["content"][0]["transcript"]
        written = "".join(
            event["delta"]
            for event in client.all("response.output_audio_transcript.delta")
            if event["item_id"] == message["id"]
        )
        assert text == written
        assert len(client.heard(message["id"])) > 0.04 * RATE * len(text)
    assert whole["status"] == "completed"
    assert "Paris" in whole["output"][0]["content"][0]["transcript"]


def test_a_client_that_ends_its_turns_itself_is_answered_when_it_asks(
    client: Client, speech: dict[str, bytes]
) -> None:
    assert client.update(**PUSHED)["audio"]["input"]["turn_detection"] is None
    client.append(speech[CAPITAL])
    client.send("input_audio_buffer.commit")
    said = client.wait("conversation.item.input_audio_transcription.completed")
    assert said["transcript"] == CAPITAL
    assert not client.all("response.created")
    client.send("response.create")
    done = client.wait("response.done")["response"]
    assert "Paris" in done["output"][0]["content"][0]["transcript"]
    assert not client.all("input_audio_buffer.speech_started")


def test_nothing_can_be_committed_where_nothing_was_said(client: Client) -> None:
    client.update(audio={"input": {"turn_detection": None}})
    for at_first in ("input_audio_buffer.commit", "input_audio_buffer.clear"):
        since = len(client.events)
        client.append(bytes(9600)) if at_first.endswith("clear") else None
        client.send(at_first)
        client.send("input_audio_buffer.commit", event_id=f"after {at_first}")
        error = client.wait("error", since=since)["error"]
        assert error["code"] == "input_audio_buffer_commit_empty"


def test_a_user_who_says_nothing_for_long_is_spoken_to(client: Client) -> None:
    detection = {"type": "server_vad", "idle_timeout_ms": 5000}
    client.update(audio={"input": {"turn_detection": detection}}, output_modalities=["text"])
    client.append(bytes(2 * 24 * 6000))  # before the first response nothing is counted
    client.write("What is the capital of France?")
    since = len(client.events)
    client.append(bytes(2 * 24 * 4900))
    client.append(bytes(2 * 24 * 200))
    timeout = client.wait("input_audio_buffer.timeout_triggered", since=since)
    assert 4990 <= timeout["audio_end_ms"] - timeout["audio_start_ms"] <= 5020
    committed = client.wait("input_audio_buffer.committed", since=since)
    assert committed["item_id"] == timeout["item_id"]
    assert client.wait("response.done", since=since)["response"]["status"] == "completed"
    client.append(bytes(2 * 24 * 4900))
    assert len(client.all("input_audio_buffer.timeout_triggered")) == 1


def test_what_is_cleared_has_never_been_said(client: Client, speech: dict[str, bytes]) -> None:
    client.update(**PUSHED)
    client.append(speech[LONG])
    client.send("input_audio_buffer.clear")
    client.wait("input_audio_buffer.cleared")
    client.append(speech[CAPITAL])
    client.send("input_audio_buffer.commit")
    said = client.wait("conversation.item.input_audio_transcription.completed")
    assert said["transcript"] == CAPITAL


def test_a_written_question_is_answered_in_writing_where_that_is_asked_for(client: Client) -> None:
    client.update(output_modalities=["text"])
    done = client.write(CAPITAL)
    assert "Paris" in done["output"][0]["content"][0]["text"]
    assert not client.all("response.output_audio.delta")


def test_a_function_of_the_client_is_called_and_its_result_is_spoken(client: Client) -> None:
    tool = {"type": "function", "name": "get_time", "description": "", "parameters": {}}
    client.update(tools=[tool])
    called = client.write("What time is it?")
    call = next(item for item in called["output"] if item["type"] == "function_call")
    assert (call["name"], call["arguments"]) == ("get_time", "{}")
    since = len(client.events)
    result = json.dumps({"time": "7:42 PM", "day": "Monday", "date": "June 1"})
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": result}
    client.send("conversation.item.create", item=output)
    client.send("response.create")
    done = client.wait("response.done", since=since)["response"]
    assert "7:42" in done["output"][0]["content"][0]["transcript"]


def test_without_a_function_of_that_name_the_servers_own_tells_the_time(client: Client) -> None:
    done = client.write("What time is it?")
    assert [item["type"] for item in done["output"]] == ["message"]


def test_speech_interrupts_a_response_and_what_was_not_heard_is_forgotten(
    client: Client, speech: dict[str, bytes]
) -> None:
    client.update(voiceloop={"traces": True})
    client.say(speech[LONG], pause_s=1.0)
    client.wait("response.output_audio.delta")
    client.say(silence(1.0) + speech[CAPITAL])
    cancelled = client.wait("response.done")["response"]
    assert cancelled["status_details"]["reason"] == "turn_detected"
    trace = client.wait("voiceloop.trace", where=lambda one: one["trace"]["turn"] == 1)["trace"]
    assert trace["outcome"] == "interrupted"
    said = cancelled["output"][0]["content"][0]["transcript"]
    assert said == trace["heard"] and said
    done = client.wait("response.done", where=lambda one: one["response"]["id"] != cancelled["id"])
    assert "Paris" in done["response"]["output"][0]["content"][0]["transcript"]
    # Nothing of a response comes after its end.
    end = client.events.index(client.wait("response.done"))
    late = [e for e in client.events[end + 1 :] if e.get("response_id") == cancelled["id"]]
    assert not [e for e in late if e["type"] != "voiceloop.trace"]


def test_a_response_can_be_cancelled_and_truncated_beyond_its_end(client: Client) -> None:
    client.create(LONG)
    client.send("response.create")
    delta = client.wait("response.output_audio.delta")
    until(lambda: len(client.heard(delta["item_id"])) >= RATE // 2)
    client.send("response.cancel")
    done = client.wait("response.done")["response"]
    assert done["status_details"]["reason"] == "client_cancelled"
    sent_ms = len(client.heard(delta["item_id"])) * 1000 // RATE
    fields = {"item_id": delta["item_id"], "content_index": 0}
    client.send("conversation.item.truncate", audio_end_ms=10**6, **fields)
    assert client.wait("conversation.item.truncated")["audio_end_ms"] == sent_ms
    client.send("conversation.item.truncate", audio_end_ms=0, **fields)
    client.wait("conversation.item.truncated", where=lambda one: one["audio_end_ms"] == 0)
    client.send("response.cancel")
    assert client.wait("error")["error"]["code"] == "response_cancel_not_active"
    assert "Paris" in client.write(CAPITAL)["output"][0]["content"][0]["transcript"]


def test_a_response_that_is_cancelled_at_any_moment_has_its_end(client: Client) -> None:
    for delay_s in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1):
        since = len(client.events)
        client.create(LONG)
        client.send("response.create")
        time.sleep(delay_s)
        client.send("response.cancel")
        # What has not begun cannot be cancelled: then it goes on to its own end.
        ended = client.wait("response.done", since=since)["response"]
        early = [one for one in client.events[since:] if one["type"] == "error"]
        assert ended["status"] == ("completed" if early else "cancelled")


def message(role: str, text: str, **place: object) -> tuple[str, dict[str, object]]:
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return "conversation.item.create", {"item": item, **place}


ASK: tuple[str, dict[str, object]] = ("response.create", {})


@pytest.mark.parametrize("order", ["truncate", "truncate, cancel", "cancel, truncate"])
def test_a_stop_button_ends_the_response_where_the_client_says(client: Client, order: str) -> None:
    """Whichever events it sends, in one burst, with the next question right behind them."""
    client.create("How do I make pancakes?")
    client.send("response.create")
    item = client.wait("response.output_item.added")["item"]["id"]
    until(lambda: len(client.heard(item)) > 2 * RATE)
    for kind in order.split(", "):
        if kind == "cancel":
            client.send("response.cancel")
        else:
            place = {"item_id": item, "content_index": 0, "audio_end_ms": 600}
            client.send("conversation.item.truncate", **place)
    client.create(CAPITAL)
    client.send("response.create")
    assert client.wait("conversation.item.truncated")["audio_end_ms"] == 600
    stopped = client.wait("response.done")
    assert stopped["response"]["status_details"]["reason"] == "client_cancelled"
    answered = client.wait("response.done", where=lambda one: one is not stopped)["response"]
    assert "Paris" in str(answered["output"])
    client.send("conversation.item.retrieve", item_id=item)
    kept = client.wait("conversation.item.retrieved")["item"]["content"][0]["transcript"]
    said = stopped["response"]["output"][0]["content"][0]["transcript"]
    assert said.startswith(kept) and len(kept) < len(said)
    # A cancel that comes behind what has ended the response may find it over.
    late = {"response_cancel_not_active"} if order == "truncate, cancel" else set[str]()
    assert {error["error"]["code"] for error in client.all("error")} <= late


@pytest.mark.parametrize("what", ["instructions", "tools", "both"])
def test_what_leaves_no_room_for_what_is_said_is_refused_with_sizes(
    client: Client, what: str
) -> None:
    tool = {"type": "function", "name": "look", "description": "Looks around. " * 300}
    asked: dict[str, object] = {
        "instructions": {"instructions": "Be kind and brief. " * 900},
        "tools": {"tools": [tool] * 20},
        "both": {"instructions": "Be kind. " * 2000, "tools": [tool]},
    }[what]
    wrong = refused(client, **asked, max_output_tokens=50)
    named = {"both": "session"}.get(what, f"session.{what}")
    assert wrong["param"] == named and "tokens, and" in wrong["message"]
    now = client.all("session.updated")[-1]["session"]
    assert (now["instructions"], now["tools"], now["max_output_tokens"]) == ("", [], 50)
    assert "Paris" in str(client.write(CAPITAL)["output"])


def test_sessions_do_not_hear_each_other(server: Serving, speech: dict[str, bytes]) -> None:
    with Client(server.url) as one, Client(server.url) as other:
        other.wait("session.created")
        one.update(**TRANSCRIBED)
        one.say(speech[CAPITAL])
        one.wait("response.done")
        assert kinds(other.events) == ["session.created"]


def test_audio_comes_as_frames_where_that_is_asked_for(
    client: Client, speech: dict[str, bytes]
) -> None:
    client.update(voiceloop={"binary_audio": True})
    client.say(speech[CAPITAL], binary=True)
    done = client.wait("response.done")["response"]
    position = 0
    for frame in client.frames:
        assert frame[:24].decode() == done["output"][0]["id"]
        assert int.from_bytes(frame[24:28], "little") == position
        position += (len(frame) - 28) // 2
    assert position > RATE // 2
    assert not client.all("response.output_audio.delta")


def silence(seconds: float) -> bytes:
    return bytes(2 * round(seconds * RATE))
