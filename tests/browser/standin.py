"""A scripted server: it serves the page, keeps what the page sends, and says what a test tells it.

It speaks the protocol and understands nothing of it. Each connection is a `Client`; a test waits
for what the page sends and answers in its own time.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from voiceloop.bundled import bundled

RATE = 24_000
PATIENCE_S = 60.0
"""After this, what a test waits for will not come."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

Event = dict[str, Any]
Pcm16 = npt.NDArray[np.int16]


def policy(host: str) -> str:
    """The content security policy that the page has to live with."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        f"connect-src 'self' ws://{host} wss://{host}; img-src 'self'; worker-src 'self'; "
        "media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def item_id(number: int) -> str:
    """An id of an item: 24 characters."""
    return f"item_{number:019}"


class Client:
    """The page at the other end of one connection."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        self._changed = threading.Condition()
        self.events: list[Event] = []
        self.audio = bytearray()
        """The microphone, as it came."""
        self.frames: list[int] = []
        """The sizes of its frames, in bytes."""
        self.closed = False
        self.headers: Mapping[str, str] = dict(connection.request.headers.raw_items())  # pyright: ignore[reportOptionalMemberAccess]

    def listen(self) -> None:
        """Keep what comes until the connection closes."""
        try:
            for message in self._connection:
                with self._changed:
                    if isinstance(message, str):
                        self.events.append(json.loads(message))
                    else:
                        self.audio += message
                        self.frames.append(len(message))
                    self._changed.notify_all()
        except ConnectionClosed:
            pass
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def send(self, kind: str, **fields: object) -> None:
        self._connection.send(json.dumps({"type": kind, "event_id": "event_1", **fields}))

    def send_raw(self, message: str | bytes) -> None:
        self._connection.send(message)

    def say(self, item: str, pcm: Pcm16, start: int = 0, *, frame: int | None = None) -> None:
        """Send sound of an item, from sample `start` on.

        It goes in one message, so that it cannot run dry on a busy machine, or in frames of
        `frame` samples, as servers send it.
        """
        frame = frame or len(pcm)
        for at in range(0, len(pcm), frame):
            header = item.encode() + struct.pack("<I", start + at)
            self._connection.send(header + pcm[at : at + frame].astype("<i2").tobytes())

    def reply(self, item: str, text: str, pcm: Pcm16, response: str = "resp_1") -> None:
        """A whole reply: text and sound at once."""
        self.send("response.created", response={"id": response})
        self.text(item, text, response)
        self.say(item, pcm)
        self.send("response.output_audio.done", item_id=item)
        self.send("response.output_audio_transcript.done", item_id=item, transcript=text)
        self.send("response.done", response={"id": response, "status": "completed", "output": []})

    def text(self, item: str, text: str, response: str = "resp_1") -> None:
        kind = "response.output_audio_transcript.delta"
        self.send(kind, response_id=response, item_id=item, delta=text)

    def until(self, true: Callable[[], object], what: str) -> None:
        """Wait for something to be true of what has come."""
        with self._changed:
            assert self._changed.wait_for(true, PATIENCE_S), f"{what}; came: {self.events[-8:]}"

    def wait(self, kind: str, count: int = 1) -> Event:
        """The event of a kind that came as number `count`."""
        self.until(lambda: len(self.of(kind)) >= count, f"no {kind} number {count}")
        return self.of(kind)[count - 1]

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["type"] == kind]

    def close(self, code: int = 1001, reason: str = "") -> None:
        self._connection.close(code, reason)


class StandIn:
    """The server. `greet` is called with each new client, before anything is read from it."""

    def __init__(
        self, greet: Callable[[Client], None] | None = None, port: int = 0, **files: Path
    ) -> None:
        self.greet = greet or greeting
        self.refusal: tuple[int, str] | None = None
        """The status and words with which everybody is sent away; none where nobody is."""
        self.refused = 0
        """How many have been sent away for that."""
        self._files = {f"/{name.replace('_', '-')}.js": path for name, path in files.items()}
        self._changed = threading.Condition()
        self.clients: list[Client] = []
        self._web = bundled("web")
        self._server = serve(
            self._connected,
            "127.0.0.1",
            port,
            process_request=self._respond,
            select_subprotocol=lambda _, offered: next(iter(offered), None),
            max_size=2**24,
        )
        self.port: int = self._server.socket.getsockname()[1]
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/"

    def client(self, number: int = 1) -> Client:
        """The client that connected as number `number`."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.clients) >= number, PATIENCE_S)
            assert came, f"no client number {number}"
            return self.clients[number - 1]

    def refuses(self, count: int) -> None:
        """Wait until so many have been sent away."""
        with self._changed:
            enough = self._changed.wait_for(lambda: self.refused >= count, PATIENCE_S)
        assert enough, f"only {self.refused} came"

    def stop(self) -> None:
        """Go away, and break every connection."""
        self._server.shutdown()
        self._thread.join()
        for client in self.clients:
            client.close()

    def _connected(self, connection: ServerConnection) -> None:
        client = Client(connection)
        with self._changed:
            self.clients.append(client)
            self._changed.notify_all()
        try:
            self.greet(client)
        except ConnectionClosed:
            return
        client.listen()

    def _respond(self, connection: ServerConnection, request: Request) -> Response | None:
        path = request.path.split("?")[0]
        if path == "/v1/realtime" and self.refusal:
            status, words = self.refusal
            with self._changed:
                self.refused += "Upgrade" in request.headers  # else it asks why
                self._changed.notify_all()
            return connection.respond(HTTPStatus(status), f"{words}\n")
        if path == "/v1/realtime":
            return None
        file = self._files.get(path) or (self._web / (path[1:] or "index.html")).resolve()
        known = path in self._files or file.is_relative_to(self._web)
        if not (known and file.is_file() and file.suffix in TYPES):
            return connection.respond(404, "not found\n")
        body = file.read_bytes()
        headers = Headers(
            {
                "Content-Type": TYPES[file.suffix],
                "Content-Length": str(len(body)),
                "Content-Security-Policy": policy(request.headers["Host"]),
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
                "Connection": "close",
            }
        )
        return Response(200, "OK", headers, body)


VOICES = [
    {"name": name, "label": label, "language": name, "language_name": language}
    for name, label, language in (
        ("cy", "Welsh", "Welsh"),
        ("de", "German", "German"),
        ("en-gb", "British", "English"),
        ("en-us", "American", "English"),
        ("qya", "qya", ""),
    )
]
"""What a server offers."""


def greeting(client: Client) -> None:
    """What a server says first."""
    own = {
        "type": "realtime",
        "instructions": "Be kind.",
        "audio": {"output": {"voice": "en-us"}},
        "voiceloop": {"voices": VOICES},
    }
    client.send("session.created", session=own)
    client.send("voiceloop.session.token", token="token-1", expires_in_s=60)


@contextmanager
def standing_in(
    greet: Callable[[Client], None] | None = None, port: int = 0, **files: Path
) -> Iterator[StandIn]:
    server = StandIn(greet, port, **files)
    try:
        yield server
    finally:
        server.stop()
