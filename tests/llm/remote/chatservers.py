"""Servers of chat completions: one that does as a test says, and the real one of transformers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from voiceloop.llm.remote.remote import OPENING

PATIENCE_S = 60.0
Play = Callable[["Request"], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came; a connection's requests have one handler, which changes."""

    command: str
    headers: dict[str, str]
    body: dict[str, Any]
    path: str = ""

    @property
    def ahead(self) -> bool:
        """Whether it has the server read ahead: no reply and not its first words are wanted."""
        if not self.path.endswith("/chat/completions"):
            return True
        return self.body.get("max_tokens") == 1 and self.said != OPENING

    @property
    def said(self) -> str:
        """What the user said last."""
        return str(self.body["messages"][-1]["content"])


class Request(BaseHTTPRequestHandler):
    """A request, and the means to answer it."""

    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.owner.connections.append(self.connection)  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        if content := self.rfile.read(length):  # else the client has hung up already
            self._serve(json.loads(content))

    def _serve(self, body: dict[str, Any]) -> None:
        owner: Scripted = self.server.owner  # type: ignore[attr-defined]
        with owner.changed:
            asked = Asked(self.command, dict(self.headers), body, self.path)
            if self.command == "POST" and asked.ahead:
                owner.ahead.append(asked)
                play = owner.reads
            else:
                owner.requests.append(asked)
                play = owner.models if self.command == "GET" else owner.next_play()
            owner.changed.notify_all()
        with suppress(OSError):
            play(self)

    def log_message(self, format: str, *args: object) -> None:
        del format, args

    def status(self, code: int, body: object, kind: str = "application/json", **more: str) -> None:
        """The whole answer at once."""
        told = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(told)), **more}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(told)

    def begin(self, kind: str = "text/event-stream") -> None:
        """The beginning of a stream, which `send` goes on with."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send(self, *chunks: object) -> None:
        """Events: JSON, or bytes as they are."""
        for one in chunks:
            raw = one if isinstance(one, bytes) else f"data: {json.dumps(one)}\n\n".encode()
            self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")

    def end(self) -> None:
        """The stream ends as it should."""
        self.wfile.write(b"0\r\n\r\n")

    def drop(self) -> None:
        """The connection breaks."""
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def closed_by_client(self) -> bool:
        """Whether the client hangs up before long."""
        self.connection.settimeout(PATIENCE_S)
        return self.connection.recv(1) == b""


DONE = b"data: [DONE]\n\n"
STOP = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def delta(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": None}]}


def saying(*texts: str, read: int = 0) -> Play:
    """A reply in these pieces."""

    usage = {"choices": [], "usage": {"prompt_tokens": read}}
    return sending(*map(delta, texts), STOP, usage)


def calling(*functions: dict[str, Any], said: str = "", **more: str) -> Play:
    """A reply that calls these functions, after it has said something. `more` is in each call."""
    calls = [{"index": n, "function": one, **more} for n, one in enumerate(functions)]
    end = {"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    return sending(*([delta(said)] if said else []), end)


def sending(*events: object) -> Play:
    """These events, and the end of the stream."""

    def play(request: Request) -> None:
        request.begin()
        request.send(*events, DONE)
        request.end()

    return play


def _reading(request: Request) -> None:
    """Read ahead as most servers do, which have no requests of llama.cpp's."""
    if request.path.endswith("/chat/completions"):
        saying("I")(request)
    else:
        request.status(404, {"error": "not found"})


def refusing(code: int, body: object, kind: str = "application/json", **headers: str) -> Play:
    return lambda request: request.status(code, body, kind, **headers)


class Scripted:
    """Plays one answer after the other, the last for ever."""

    def __init__(
        self, *plays: Play, models: Play | Sequence[str] = ("small",), port: int = 0
    ) -> None:
        listed = (
            models if callable(models) else refusing(200, {"data": [{"id": m} for m in models]})
        )
        self.models: Play = listed
        self.plays = list(plays)
        self.requests: list[Asked] = []
        self.ahead: list[Asked] = []
        self.reads: Play = _reading
        """How it answers what it is to read ahead."""
        self.connections: list[socket.socket] = []
        self.changed = threading.Condition()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), Request)
        self._http.owner = self  # type: ignore[attr-defined]
        self._http.daemon_threads = True
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def next_play(self) -> Play:
        return self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What replies were asked for."""
        return [one.body for one in self.requests if one.command == "POST"]

    def secured(self, certificate: Path, key: Path) -> None:
        """Speak TLS from now on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    def __enter__(self) -> Scripted:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        for connection in self.connections:  # else they would be answered for ever
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


PROGRAM = """
import sys
from transformers.cli.serving.utils import DirectStreamer
from transformers.cli.transformers import main

put = DirectStreamer.put

def noted(streamer, tokens):
    try:
        put(streamer, tokens)
    except Exception:  # what the model is stopped with
        print(f"stopped after {streamer.total_tokens} tokens", flush=True)
        raise

DirectStreamer.put = noted
sys.argv = ["transformers", "serve", *sys.argv[1:]]
main()
"""


class Real:
    """`transformers serve` in a process of its own, whose log tells when a reply is stopped."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1"
        self.log = folder / f"transformers-{port}.log"
        self._environ = os.environ | {"HF_HUB_CACHE": str(folder), "HF_HUB_OFFLINE": "1"}
        self.start()

    def start(self) -> None:
        """Run it, and wait until it is there."""
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--device", "cpu"]
        options += ["--dtype", "float32"]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *options],
                env=self._environ,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1):
                return
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def stopped(self) -> list[int]:
        """After how many tokens replies have been stopped so far."""
        return [int(n) for n in re.findall(r"stopped after (\d+) tokens", self.log.read_text())]

    def kill(self) -> None:
        """As if its machine had lost its power."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def real(folder: Path) -> Iterator[Real]:
    """The real server until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Real(folder, port)
    try:
        yield server
    finally:
        server.kill()
