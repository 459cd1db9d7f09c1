"""The real server in a process of its own, and a client that keeps what it is told."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from models.train.questions import spoken
from models.train.voices import Voice
from tests.conftest import lacking
from voiceloop.audio.frames import Resampler
from voiceloop.types import Pcm

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RATE = 24_000
FRAME_S = 0.02
PATIENCE_S = 30.0
Event = dict[str, Any]
SHELL = os.environ.get("VOICELOOP_TEST_SHELL", "voiceloop")
"""What servers run under where a test does not say: the program, `uvicorn`, `mounted` (in FastAPI,
under uvicorn), `haproxy` (two servers behind it), or `ray` (two replicas behind Ray's proxy). Tests
that are marked as not meant for one of them are skipped then."""
SHELLS = ("voiceloop", "uvicorn", "mounted") if SHELL == "voiceloop" else (SHELL,)
"""What attacks are tried on."""
UVICORN = {
    "uvicorn": ("voiceloop.server.asgi:app", "--http", "voiceloop.server.paced:PacedHttp"),
    "mounted": ("tests.server.mounted:site", "--ws", "voiceloop.server.paced:PacedWebSocket"),
}
"""What uvicorn is told of the application."""
READS_FIGURES = pytest.mark.not_over("ray", why="Ray asks one replica only for its figures")
"""Mark of tests that read /metrics."""
KEY = "k" * 32
"""An API key, of clients that bring none where a server asks for one."""
BY_ITSELF = ("--preset", "starter", "--llm-server", "none")
"""Options by which nothing hangs on what has been pulled here, or on what else runs."""


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Serving:
    """The process, and where it listens."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: Path, scheme: str) -> None:
        self.process = process
        self.port = port
        self.log = log
        self.ports = [port]
        """Ports of all servers: several if they are behind a proxy."""
        self.url = f"{'wss' if scheme == 'https' else 'ws'}://localhost:{port}/v1/realtime"
        self.page = f"{scheme}://localhost:{port}"

    def metrics(self, key: str | None = None) -> dict[str, float]:
        """The figures of /metrics, of all servers together."""
        total = defaultdict[str, float](float)
        for port in self.ports:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            page = f"{self.page.rsplit(':', 1)[0]}:{port}/metrics"
            with urlopen(Request(page, headers=headers)) as answer:
                lines = answer.read().decode().splitlines()
            for line in lines:
                if not line.startswith("#"):
                    name, figure = line.rsplit(" ", 1)
                    total[name] += float(figure)
        return total

    def stop(self) -> int:
        """Ask it to end; returns its status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


def serving(
    folder: Path,
    *options: str,
    port: int | None = None,
    shell: str = SHELL,
    **variables: str,
) -> AbstractContextManager[Serving]:
    """Run `voiceloop serve`, or the same service in another shell, until the block ends."""
    one = port is not None or "--cert" in options
    if shell == "haproxy" and not one:
        return _behind_haproxy(folder, *options, **variables)
    if shell == "ray" and not one:
        return _on_ray(folder, *options, **variables)
    return _one(folder, *options, port=port or free_port(), shell=shell, **variables)


@contextmanager
def _behind_haproxy(folder: Path, *options: str, **variables: str) -> Iterator[Serving]:
    port, ports = free_port(), [free_port(), free_port()]
    with ExitStack() as stack:
        store = stack.enter_context(redis_server(folder))
        options += ("--allow-host", f"localhost:{port}", "--server.store", store)
        servers = [
            stack.enter_context(_one(folder, *options, port=own, shell="voiceloop", **variables))
            for own in ports
        ]
        stack.enter_context(proxied(port, ports))
        own = Serving(servers[0].process, port, servers[0].log, "http")
        own.ports = ports
        yield own


@contextmanager
def _on_ray(folder: Path, *options: str, **variables: str) -> Iterator[Serving]:
    from tests.cluster.cluster import Cluster

    port, log = free_port(), folder / "replicas.log"
    if "--api-key-file" not in options:
        variables.setdefault("VOICELOOP_API_KEY", KEY)
    given = shlex.join(("--port", str(port), "--behind-proxy", *BY_ITSELF, *options))
    with (
        redis_server(folder) as store,
        Cluster(folder, port, f"{given} --server.store {store}", **variables) as cluster,
    ):
        cluster.deploy(2)
        time.sleep(12.0)  # until Ray's HAProxy, which looks each 5 s, gives clients to both
        log.touch()
        yield Serving(cluster.process, port, log, "http")
        log.write_text("".join(one.read_text() for one in cluster.logs()))


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Run a Redis of our own, which writes nothing to the disk. Yield its address."""
    program = shutil.which("redis-server")
    if program is None:
        lacking("the program redis-server is not installed (make test says how)")
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen([program, *options], cwd=folder, stdout=subprocess.DEVNULL) as process:
        until(lambda: _listens(port))
        yield f"redis://127.0.0.1:{port}"
        process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def proxied(port: int, ports: Sequence[int]) -> Iterator[None]:
    """Run HAProxy at a port, in front of the servers at two other ports."""
    first, second = (f"127.0.0.1:{own}" for own in ports)
    variables = {"VOICE_ADDRESS": f"127.0.0.1:{port}", "VOICE_FIRST": first, "VOICE_SECOND": second}
    with subprocess.Popen(
        ["haproxy", "-db", "-f", DEPLOY / "haproxy.cfg"],
        env=os.environ | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
                    break
                assert time.monotonic() < deadline, "HAProxy finds no server"
                time.sleep(0.1)
            yield
        finally:
            process.kill()


@contextmanager
def _one(folder: Path, *options: str, port: int, shell: str, **variables: str) -> Iterator[Serving]:
    log = folder / f"serve-{port}.log"
    given = ["--port", str(port), *BY_ITSELF, *options]
    command = ["-m", "voiceloop", "serve", *given]
    if shell in UVICORN:
        command = ["-m", "uvicorn", *UVICORN[shell], "--port", str(port)]
        variables["VOICELOOP_OPTIONS"] = shlex.join(given)
    with log.open("a") as stream:
        process = subprocess.Popen(
            [sys.executable, *command],
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
        )
        assert process.stdout is not None
        try:
            if shell in UVICORN:
                wait_until_it_listens(process, port, log)
            else:
                line = process.stdout.readline()
                assert line.startswith("listening on "), log.read_text()
            yield Serving(process, port, log, "https" if "--cert" in options else "http")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


@contextmanager
def scripted(
    module: str, port: int, log: Path, *arguments: object, **variables: str
) -> Iterator[Serving]:
    """Run a module of the tests that serves at a port, until the block ends."""
    command = [sys.executable, "-m", module, str(port), *map(str, arguments)]
    with log.open("w") as stream:
        process = subprocess.Popen(
            command, env=os.environ | variables, stdout=subprocess.PIPE, stderr=stream, text=True
        )
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n", log.read_text()
            yield Serving(process, port, log, "http")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def wait_until_it_listens(process: subprocess.Popen[str], port: int, log: Path) -> None:
    while True:
        assert process.poll() is None, log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)


@cache
def spoken_question(text: str) -> Pcm:
    """A spoken question, at 16 kHz.

    It is made in a new process: how espeak-ng says it depends on all that it has said before.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(spoken, text, Voice("espeak", "en-us")).result()


def to_wire(pcm: Pcm, rate: int) -> bytes:
    """Audio as messages carry it."""
    if rate != RATE:
        resampler = Resampler(rate, RATE)
        pcm = np.concatenate((resampler.feed(pcm), resampler.flush()))
    return (np.clip(pcm, -1, 1) * 32767).astype("<i2").tobytes()


class Client:
    """One connection, read by a thread of its own."""

    def __init__(self, url: str, **options: Any) -> None:
        options.setdefault("subprotocols", ["realtime"])
        if SHELL == "ray":
            options.setdefault("additional_headers", {"Authorization": f"Bearer {KEY}"})
        self._open = connect(url, max_size=None, compression=None, **options)
        self.socket = self._open.__enter__()
        self.events: list[Event] = []
        self.times: list[float] = []
        self.frames: list[bytes] = []
        self.closed: ConnectionClosed | None = None
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.__exit__(None, None, None)
        self._reader.join()

    def _read(self) -> None:
        try:
            for message in self.socket:
                with self._changed:
                    if isinstance(message, bytes):
                        self.frames.append(message)
                    else:
                        self.events.append(json.loads(message))
                        self.times.append(time.monotonic())
                    self._changed.notify_all()
        except ConnectionClosed:
            pass  # the loop just ends if the server has said goodbye
        self.closed = self.socket.protocol.close_exc
        with self._changed:
            self._changed.notify_all()

    def drop(self) -> None:
        """End the connection without a word of goodbye."""
        self.socket.socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()

    def send(self, kind: str, **fields: Any) -> None:
        """Send an event."""
        self.socket.send(json.dumps({"type": kind, **fields}))

    def update(self, **session: Any) -> Event:
        """Change the session; returns it as it is then."""
        self.send("session.update", session={"type": "realtime", **session})
        return self.wait("session.updated")["session"]

    def say(self, audio: bytes, *, pause_s: float = 1.5, binary: bool = False) -> None:
        """Speak at real-time pace, and then be silent for `pause_s`."""
        size = 2 * round(FRAME_S * RATE)
        audio += bytes(size * round(pause_s / FRAME_S))
        begun = time.monotonic()
        for index, at in enumerate(range(0, len(audio), size)):
            time.sleep(max(0.0, begun + index * FRAME_S - time.monotonic()))
            self.append(audio[at : at + size], binary=binary)

    def append(self, audio: bytes, *, binary: bool = False) -> None:
        """Send audio at once."""
        if binary:
            self.socket.send(audio)
        else:
            self.send("input_audio_buffer.append", audio=base64.b64encode(audio).decode())

    def create(self, text: str) -> None:
        """Add what the user has written."""
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        self.send("conversation.item.create", item=item)

    def write(self, text: str) -> Event:
        """Ask in writing, and wait for the whole response."""
        since = len(self.events)
        self.create(text)
        self.send("response.create")
        return self.wait("response.done", since=since)["response"]

    def wait(
        self, kind: str, *, since: int = 0, where: Callable[[Event], bool] = lambda event: True
    ) -> Event:
        """The first event of a kind from number `since` on; waits for it."""
        deadline = time.monotonic() + PATIENCE_S
        with self._changed:
            while True:
                for event in self.events[since:]:
                    if event["type"] == kind and where(event):
                        return event
                left = deadline - time.monotonic()
                seen = [event["type"] for event in self.events[since:]]
                assert left > 0 and self.closed is None, (kind, seen, self.closed)
                self._changed.wait(left)

    def all(self, kind: str) -> list[Event]:
        """All events of a kind so far."""
        return [event for event in self.events if event["type"] == kind]

    def heard(self, item_id: str) -> Pcm:
        """The audio of an item, as far as it has come."""
        deltas = self.all("response.output_audio.delta")
        own = [base64.b64decode(one["delta"]) for one in deltas if one["item_id"] == item_id]
        return np.frombuffer(b"".join(own), "<i2").astype(np.float32) / np.float32(32768)


def kinds(events: Sequence[Event]) -> list[str]:
    """The types of events, runs of one type counted once."""
    found: list[str] = []
    for event in events:
        if not found or found[-1] != event["type"]:
            found.append(event["type"])
    return found


def until(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never is"
        time.sleep(0.05)


@contextmanager
def well_served(server: Serving, **options: Any) -> Iterator[Client]:
    """A client whose session goes on whatever others do: at the end of the block it is answered."""
    with Client(server.url, **options) as client:
        client.wait("session.created")
        client.update(output_modalities=["text"])
        yield client
        assert "Paris" in str(client.write("What is the capital of France?")["output"])
