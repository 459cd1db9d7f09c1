"""Clients that are gone, or as good as gone: it is noticed, and their places are free again."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from tests.server.serving import (
    PATIENCE_S,
    READS_FIGURES,
    SHELLS,
    Client,
    Serving,
    serving,
    until,
    well_served,
)

pytestmark = [pytest.mark.real, READS_FIGURES]

PLACES = 3
PING_S = 1.0
"""A client of the same process as the tests may take most of that to answer on a busy machine."""


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """Where the server runs."""
    return request.param


@pytest.fixture(scope="module")
def server(shell: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    options = (
        *("--server.max-sessions", str(PLACES), "--server.ping-s", str(PING_S)),
        *("--server.resume-s", "60", "--server.max-parked-per-key", "1"),
    )
    with serving(tmp_path_factory.mktemp("vanishing"), *options, shell=shell) as server:
        yield server
        assert "Traceback" not in server.log.read_text()


@pytest.fixture
def friend(server: Serving) -> Iterator[Client]:
    """Somebody whose session goes on whatever happens to the others."""
    with well_served(server) as friend:
        yield friend


def sessions(server: Serving, state: str) -> int:
    """How many sessions there are in a state, as the server's metrics tell."""
    return round(server.metrics()[f'voiceloop_sessions{{state="{state}"}}'])


def connected(server: Serving) -> int:
    return sessions(server, "connected")


def parked(server: Serving) -> int:
    return sessions(server, "parked")


class Relay:
    """A wire between a client and the server that can be cut without either being told."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.cut = threading.Event()
        self.held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def client(self, server: Serving) -> Client:
        """A client of the server that is connected by this wire."""
        wire = socket.create_connection(self._listener.getsockname())
        return Client(server.url, sock=wire, close_timeout=0.1)

    def _carry(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._server))
        self.held += [client, server]
        while not self.cut.is_set():
            for ready in select.select([client, server], [], [], 0.01)[0]:
                data = ready.recv(1024)
                if ready is server:
                    client.sendall(data)
                else:
                    server.sendall(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cut.set()
        self._thread.join()
        for end in (*self.held, self._listener):
            end.close()


def test_the_session_of_who_is_gone_without_a_word_waits_where_it_has_a_token(
    server: Serving, friend: Client
) -> None:
    with Relay(server.port) as relay, relay.client(server) as client:
        client.update(voiceloop={"resume": True})
        token = client.wait("voiceloop.session.token")["token"]
        client.write("What is 7 times 8?")
        relay.cut.set()
        until(lambda: (connected(server), parked(server)) == (1, 1))
    with Client(server.url) as again:
        again.send("voiceloop.resume", token=token)
        again.wait("voiceloop.session.resumed")
        again.wait("voiceloop.session.token")
        assert len(again.all("conversation.item.added")) == 2
        assert parked(server) == 0
        again.update(voiceloop={"resume": False})


class Mute:
    """A client that reads all it is sent, and answers no ping."""

    def __init__(self, server: Serving) -> None:
        self._protocol = ClientProtocol(parse_uri(server.url))
        self._socket = socket.create_connection(("127.0.0.1", server.port))
        self._socket.settimeout(0.05)
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        self.pings = 0
        self.ended = False
        self.code: int | None = None
        self.token = ""

    def _flush(self) -> None:
        self._socket.sendall(b"".join(self._protocol.data_to_send()))

    def say(self, message: dict[str, object]) -> None:
        self._protocol.data_to_send()  # the pongs that it would have sent
        self._protocol.send_text(json.dumps(message).encode())
        self._flush()

    def read(self) -> None:
        try:
            data = self._socket.recv(100_000)
        except TimeoutError:
            return
        if not data:
            self.ended = True
            return
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode is Opcode.PING:
                self.pings += 1
            elif isinstance(event, Frame) and event.opcode is Opcode.CLOSE:
                self.code = int.from_bytes(event.data[:2])
            elif isinstance(event, Frame) and b"session.token" in bytes(event.data):
                self.token = json.loads(bytes(event.data))["token"]

    def flood(self, data: bytes) -> None:
        """Send the same until the server has had enough, and read nothing."""
        self._socket.settimeout(PATIENCE_S)
        while True:
            self._socket.sendall(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()


@pytest.mark.not_over("haproxy", "ray", why="the proxy reads on, and holds the client's socket")
def test_who_pings_without_end_and_does_not_read_is_given_up_and_may_return(
    tmp_path: Path, shell: str
) -> None:
    limits = ("--server.messages-per-s", "1000000", "--server.messages-burst", "1000000")
    with serving(tmp_path, *limits, "--server.ping-s", str(PING_S), shell=shell) as server:
        with Mute(server) as mute:
            while not mute.pings:
                mute.read()
            session = {"type": "realtime", "voiceloop": {"resume": True}}
            mute.say({"type": "session.update", "session": session})
            while not mute.token:
                mute.read()
            ping = Frame(Opcode.PING, b"x" * 125).serialize(mask=True)
            clear = Frame(Opcode.TEXT, b'{"type":"input_audio_buffer.clear"}').serialize(mask=True)
            with pytest.raises(ConnectionError):
                mute.flood(ping * 1000 + clear)
            until(lambda: (connected(server), parked(server)) == (0, 1))
        with Client(server.url) as again:
            again.send("voiceloop.resume", token=mute.token)
            again.wait("voiceloop.session.resumed")
        if shell == "voiceloop":  # uvicorn has its own log
            assert '"no answer to a ping in 1 s"' in server.log.read_text()


def test_who_answers_no_ping_is_given_up_unless_it_says_something(
    server: Serving, friend: Client
) -> None:
    with Mute(server) as mute:
        while mute.pings < 6:
            mute.read()
            mute.say({"type": "input_audio_buffer.clear"})
            assert not mute.ended
        assert connected(server) == 2
        while not mute.ended:
            mute.read()
        assert mute.code == 1011
        until(lambda: connected(server) == 1)
