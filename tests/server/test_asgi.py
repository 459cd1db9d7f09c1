"""The service as an ASGI application: what clients get is what they get from `voiceloop serve`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, closing, nullcontext
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from tests.fakes import Script
from tests.server.serving import BY_ITSELF, Client, Serving, serving, to_wire
from tests.server.session.test_connection import Wire
from tests.support.runner import InlineRunner
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voiceloop.audio.files import AudioFile
from voiceloop.bundled import bundled
from voiceloop.engines import Engines
from voiceloop.server.access.auth import Access
from voiceloop.server.asgi import Application
from voiceloop.server.port import Binding
from voiceloop.server.resume.registry import SessionRegistry
from voiceloop.server.resume.store import MemoryStore
from voiceloop.server.routes import HttpRequest, load
from voiceloop.server.service import Service
from voiceloop.server.session.connection import Connection
from voiceloop.settings.config import Config

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
CAPITAL = "What is the capital of France?"
REQUESTS: list[tuple[str, str, dict[str, str]]] = [
    ("GET", "/", {}),
    ("HEAD", "/", {}),
    ("GET", "/nothing", {}),
    ("POST", "/", {}),
    ("CONNECT", "/metrics", {}),
    ("POST", "/metrics", {}),
    ("DELETE", "/healthz", {}),
    ("GET", "/healthz", {}),
    ("GET", "/readyz", {}),
    ("GET", "/v1/realtime", {}),
    ("GET", "/v1/realtime?model=any&key=secret", {}),
    ("GET", "/v1/voices/nobody", {}),
    ("GET", "/%2e%2e/etc/passwd", {}),
    ("GET", "/", {"Host": "evil.example"}),
    ("GET", "/v1/realtime", {"Origin": "https://evil.example"}),
    ("GET", "/metrics", {"X-Forwarded-For": "192.0.2.1"}),
    ("GET", "/metrics", {"Sec-Fetch-Site": "cross-site"}),
    ("GET", "/v1/voices/en", {"Sec-Fetch-Site": "same-site"}),
]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, Serving]]:
    """`voiceloop serve`, and the same under uvicorn."""
    folder = tmp_path_factory.mktemp("asgi")
    with (
        serving(folder, shell="voiceloop") as plain,
        serving(folder, shell="uvicorn") as other,
    ):
        yield plain, other
        assert "Traceback" not in other.log.read_text()


def answered(server: Serving, method: str, target: str, headers: dict[str, str]) -> Any:
    """Status, body and headers, but for those that are each server's own."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request(method, target, headers={"Host": f"localhost:{server.port}", **headers})
        answer = connection.getresponse()
        body = answer.read().replace(str(server.port).encode(), b"PORT")
    fields = {
        name.lower(): value.replace(str(server.port), "PORT")
        for name, value in answer.headers.items()
    }
    for own in ("date", "server", "connection"):
        fields.pop(own, None)
    return answer.status, body, fields


def test_questions_are_answered(both: tuple[Serving, Serving]) -> None:
    with AudioFile(ROOT / "models/starter/demo.wav") as file:
        spoken = np.concatenate(list(file.blocks()))
    with Client(both[1].url) as client:
        assert client.wait("session.created")["session"]["type"] == "realtime"
        assert "Paris" in str(client.write(CAPITAL)["output"])
        since = len(client.events)
        client.say(to_wire(spoken, 16_000))
        response = client.wait("response.done", since=since)["response"]
        assert response["status"] == "completed"


@pytest.mark.parametrize("shell", ["uvicorn", "mounted"])
def test_a_turn_ends_before_the_server_does(tmp_path: Path, shell: str) -> None:
    with serving(tmp_path, shell=shell) as server, Client(server.url) as client:
        client.wait("session.created")
        client.create("Why is the sky blue?")
        client.send("response.create")
        client.wait("response.output_audio.delta")
        server.process.send_signal(signal.SIGTERM)
        assert client.wait("response.done")["response"]["status"] == "completed"
        server.process.wait(20)
        assert client.socket.close_code == 1001
        assert "Traceback" not in server.log.read_text()


def test_wrong_options_are_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uvicorn", "voiceloop.server.asgi:app", "--port", "0"],
        env={"PATH": "", "HOME": str(tmp_path), "VOICELOOP_OPTIONS": "--tts.voice nobody-speaks"},
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if "nobody-speaks" in line]
    assert line.startswith("ERROR:") and "Traceback" not in done.stderr


# ---- in a process of somebody else's

EMBEDDED = f"""
import gc, json, logging, os, signal, sys, threading
import anyio
from voiceloop.server.asgi import Application
def state():
    handlers = [id(signal.getsignal(one)) for one in signal.valid_signals()]
    logs = {{name: len(logging.getLogger(name).handlers) for name in ("", "voiceloop")}}
    return handlers, dict(os.environ), gc.get_freeze_count(), gc.get_threshold(), logs, (
        logging.getLogger("voiceloop").level, sys.excepthook is sys.__excepthook__)
async def main():
    voice, before = Application.of(*{BY_ITSELF!r}), state()
    async with voice.open():
        within = state()
    return before == within, before == state()
same = anyio.run(main)
ours = [one.name for one in threading.enumerate() if one.name.startswith("voiceloop")]
print(json.dumps([*same, ours]))
"""


def test_nothing_of_the_process_is_changed() -> None:
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", EMBEDDED], env=env, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[true, true, []]", done.stdout + done.stderr


def scripted_service() -> Service:
    run, heard = InlineRunner, ScriptedAsr(Script([], 1.0))
    engines = Engines(
        ScriptedVad(), heard, run(), ScriptedLlm({}), run(), ScriptedTts(rate=24_000), run()
    )
    access, site = Access(Binding()), load(bundled("web"))
    return Service(nullcontext(engines), Config(), access, site, MemoryStore())


@asynccontextmanager
async def scripted() -> AsyncGenerator[Application]:
    application = Application(scripted_service)
    async with application.open():
        yield application


@pytest.mark.anyio
@pytest.mark.parametrize("extension", [False, True])
@pytest.mark.parametrize(
    ("host", "client", "status"),
    [
        ("evil.example", ("127.0.0.1", 50_000), 421),
        ("localhost:8765", ("192.0.2.7", 50_000), 403),
        ("localhost:8765", None, 403),  # a Unix socket
    ],
)
async def test_a_server_without_the_extension_closes_the_socket_of_who_is_refused(
    host: str, client: tuple[str, int] | None, status: int, extension: bool
) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "websocket",
        "path": "/v1/realtime",
        "query_string": b"",
        "headers": [(b"host", host.encode()), (b"upgrade", b"websocket")],
        "client": client,
    }
    if extension:
        scope["extensions"] = {"websocket.http.response": {}}
    async with scripted() as application:
        await application(scope, receive, send)
    if extension:
        assert [one["type"] for one in sent] == [
            "websocket.http.response.start",
            "websocket.http.response.body",
        ]
        assert sent[0]["status"] == status
    else:
        assert [(one["type"], one["code"]) for one in sent] == [("websocket.close", 1008)]


class Vanishing(Wire):
    """A socket whose client may be gone."""

    async def vanished(self) -> None:
        await anyio.sleep_forever()


@pytest.mark.anyio
async def test_whoever_leaves_in_vain_is_no_longer_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def leave(registry: SessionRegistry, connection: Connection) -> bool:
        raise OSError

    monkeypatch.setattr(SessionRegistry, "leave", leave)
    wire, service, ready = Vanishing(), scripted_service(), anyio.Event()
    wire.hang_up()
    async with service.open(ready.set):
        await ready.wait()
        headers = (("host", "localhost:8765"),)
        with pytest.raises(OSError):
            await service.serve(wire, HttpRequest("GET", "/v1/realtime", headers, "127.0.0.1"))
        assert service.connections == 0


@pytest.mark.anyio
async def test_below_a_mount_the_paths_are_its_own() -> None:
    from fastapi import FastAPI
    from starlette.testclient import TestClient

    async with scripted() as application:
        site = FastAPI()
        site.mount("/voice", application)

        def look() -> int:
            with TestClient(site, base_url="http://localhost:8765") as client:
                return client.get("/voice/healthz").status_code

        assert await anyio.to_thread.run_sync(look) == 200
