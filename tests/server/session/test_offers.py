"""Offered, used and kept: a language-model server beside voiceloop's own, over real sockets."""

from __future__ import annotations

import json
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.llm.remote.chatservers import Scripted, refusing, saying
from tests.llm.remote.localstandins import ollama, standing_in
from tests.server.offering import offering
from tests.server.serving import Client, Event, Serving
from voiceloop.assembly.choosing import Choosing
from voiceloop.server.session.offers import Offers
from voiceloop.settings.config import load_config
from voiceloop.wire.settings import LlmServer

pytestmark = pytest.mark.real

MODELS = ["llama3.2", "qwen2.5:7b", "gemma3:4b"]
OLLAMA = {"id": "ollama", "name": "Ollama", "models": MODELS, "used": False}
USE = "voiceloop.llm_server.use"
USED = "voiceloop.llm_server.used"


OWN = '# mine\n[llm]\ntemperature = 0.5  # warm\ndraft = "ngram"\n'


@pytest.fixture
def brain() -> Iterator[Scripted]:
    """A stand-in of Ollama."""
    with standing_in(ollama(), saying("I am Ollama's.")) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The user's own file of settings."""
    path = tmp_path / "config.toml"
    path.write_text(OWN)
    return path


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server whose offer nobody has taken in the end."""
    folder = tmp_path_factory.mktemp("untouched")
    file = folder / "config.toml"
    file.write_text(OWN)
    with (
        standing_in(ollama(), saying("I am Ollama's.")) as brain,
        offering(folder, file, brain.port) as server,
    ):
        yield server
        assert file.read_text() == OWN and brain.asked == []
        assert "Traceback" not in server.log.read_text()


@pytest.fixture
def server(tmp_path: Path, file: Path, brain: Scripted) -> Iterator[Serving]:
    with offering(tmp_path, file, brain.port) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


def page(server: Serving, **options: Any) -> Client:
    """The server's own page, opened on this machine."""
    return Client(server.url, origin=server.page, **options)


def offered(client: Client) -> list[Any]:
    """What the client is offered, once that is told."""
    found = client.wait("session.updated", where=lambda one: bool(_servers(one)))
    return _servers(found)


def _servers(told: Event) -> list[Any]:
    return told["session"]["voiceloop"]["llm_servers"]


def _resumes(told: Event) -> bool:
    return bool(told["session"]["voiceloop"]["resume"])


def replied(client: Client) -> str:
    client.update(output_modalities=["text"])
    return json.dumps(client.write("Who is speaking?")["output"])


def test_a_visitor_here_is_told_chooses_and_goes_on_with_what_was_said(
    server: Serving, brain: Scripted, file: Path
) -> None:
    with page(server) as client:
        assert offered(client) == [OLLAMA]
        client.update(voiceloop={"resume": True})
        token = client.wait("voiceloop.session.token")["token"]
        assert "The scripted one." in replied(client)
        client.send(USE, server="ollama")
        used = client.wait(USED)
        assert (used["name"], used["model"], used["kept"]) == ("Ollama", "llama3.2", str(file))
        # A session that is under way is not disturbed.
        assert "The scripted one." in replied(client)
    with page(server) as client:
        client.send("voiceloop.resume", token=token)
        client.wait("voiceloop.session.resumed")
        assert "I am Ollama's." in replied(client)
        client.send("session.update", session={"type": "realtime"})
        # What came before is of the session with which the connection began.
        told = client.wait("session.updated", where=_resumes)["session"]
        assert told["model"] == "llama3.2" and offered(client) == [OLLAMA | {"used": True}]
        assert f"llm llama3.2 at 127.0.0.1:{brain.port}" in told["voiceloop"]["models"]
        assert told["instructions"] != "Be scripted."
    asked = [one["content"] for one in brain.asked[-1]["messages"] if one["role"] != "system"]
    assert asked[:2] == ["Who is speaking?", "The scripted one."], (
        "it has read what was said before"
    )
    with Client(server.url) as client:  # everybody else has it too, from now on
        assert "I am Ollama's." in replied(client)
    assert file.read_text().startswith("# mine\n[llm]\ntemperature = 0.5  # warm\n")
    kept = tomllib.loads(file.read_text())["llm"]
    assert kept["base_url"] == brain.url and kept["target"] == "llama3.2"
    assert kept["draft"] == "auto", "a draft is the server's own to load"
    log = server.log.read_text()
    assert log.count("a language-model server is offered") == 1
    assert log.count("another language model replies from now on") == 1


def test_the_next_start_knows_what_was_taken_also_where_it_does_not_run(
    tmp_path: Path, file: Path, brain: Scripted
) -> None:
    def look(**flags: str) -> list[LlmServer] | None:
        hears = {"asr.model": "tiny.en"}
        settings, origins = load_config([file], flags=hears | flags)
        offers = Offers.of(Choosing(settings=settings, origins=origins))
        return None if offers is None else list(anyio.run(offers.look))

    file.write_text(f'[llm]\nengine = "openai"\nbase_url = "{brain.url}"\ntarget = "qwen2.5:7b"\n')
    told, name = str(brain.port), f"a server at port {brain.port}"
    others = ("llama3.2", "gemma3:4b")
    found = look()
    assert found and LlmServer("ollama", "Ollama", ("qwen2.5:7b", *others), used=True) in found
    brain.__exit__()
    gone = look()
    assert gone and LlmServer(told, name, ("qwen2.5:7b",), used=True) in gone
    assert look(**{"llm.engine": "openai"}) is None, "flags name it, so no file could change that"
    file.write_text(file.read_text().replace("127.0.0.1", "example.com"))
    assert look() is None


FOREIGN = {
    "a program": ("localhost", None),
    "a page of another origin that may connect": ("localhost", "http://localhost:5173"),
    "through a tunnel": ("voice.example.com", "http://voice.example.com:{port}"),
    "under another name of this machine": ("localhost", "http://127.0.0.1:{port}"),
}
"""What the server is called, and the origin of the page."""


@pytest.mark.parametrize("who", FOREIGN)
def test_nobody_else_is_told_and_nobody_else_can_choose(who: str, untouched: Serving) -> None:
    name, origin = FOREIGN[who]
    origin = origin and origin.format(port=untouched.port)
    # However it is called, it is reached from here.
    way = socket.create_connection(("127.0.0.1", untouched.port))
    url = untouched.url.replace("localhost", name)
    with Client(url, origin=origin, sock=way) as client:
        client.send(USE, server="ollama")
        error = client.wait("error")["error"]
        assert error["code"] == "not_permitted" and "\n" not in error["message"]
        with page(untouched) as other:
            offered(other)  # by then whoever came before would have been told
        assert client.update()["voiceloop"]["llm_servers"] == []
        assert "The scripted one." in replied(client)


def test_conversations_are_kept_only_where_the_server_was_told_to(untouched: Serving) -> None:
    with page(untouched) as client:
        client.send("voiceloop.conversation.open", name="work")
        error = client.wait("error")["error"]
        assert error["code"] == "not_permitted" and "--conversations" in error["message"]
        offered(client)
        told = [event["session"]["voiceloop"] for event in client.events if "session" in event]
        assert told and not any(key.startswith("conversation") for one in told for key in one)


@pytest.mark.parametrize("id", ["http://127.0.0.1:1/v1", "vllm", "", "../ollama", "Ollama"])
def test_no_address_is_taken_from_a_client(id: str, untouched: Serving) -> None:
    with page(untouched) as client:
        offered(client)
        client.send(USE, server=id, event_id="mine")
        error = client.wait("error")["error"]
        assert (error["param"], error["event_id"]) == ("server", "mine")
        assert "is offered" in error["message"]
        assert "The scripted one." in replied(client)


def test_what_does_not_reply_is_not_taken(server: Serving, brain: Scripted, file: Path) -> None:
    brain.plays = [refusing(400, {"error": "this model cannot chat"})]
    before = file.read_text()
    with page(server) as client:
        offered(client)
        client.send(USE, server="ollama")
        assert "cannot chat" in client.wait("error")["error"]["message"]
        assert "The scripted one." in replied(client)
        brain.plays = [saying("I am Ollama's.")]
        client.send(USE, server="ollama")
        client.wait(USED)
    assert file.read_text() != before


@pytest.mark.parametrize(
    ("flags", "server", "offers"),
    [
        ({"asr.model": "tiny.en"}, None, True),
        ({}, None, False),
        ({"asr.model": "tiny.en"}, "none", False),
        ({"asr.model": "tiny.en", "llm.engine": "openai"}, None, False),
    ],
)
def test_it_is_offered_where_people_are_understood_and_nothing_else_was_chosen(
    flags: dict[str, str], server: str | None, offers: bool
) -> None:
    settings, origins = load_config(flags=flags)
    command = Choosing(settings=settings, origins=origins, llm_server=server)
    assert (Offers.of(command) is not None) == offers
