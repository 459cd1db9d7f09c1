"""Clients that send what they like as fast as they can, over a transport that is the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.config import Config
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from tests.support.clock import VirtualClock
from voiceloop.server.paced import (
    EXTENSION,
    NEWCOMERS,
    OPENING_S,
    PIECE,
    UNREAD_BYTES,
    WEIGHT_BYTES,
    PacedHttp,
    PacedWebSocket,
)
from voiceloop.settings.config import ServerConfig

pytestmark = pytest.mark.virtual

AT_ONCE = 250_000
"""Bytes that the event loop hands over in one go."""
LIMITS = ServerConfig(messages_burst=100, messages_per_s=20, ping_s=1e6)
OPENING = b"\r\n".join(
    (
        *(b"GET / HTTP/1.1", b"Host: localhost", b"Upgrade: websocket", b"Connection: Upgrade"),
        *(b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", b"Sec-WebSocket-Version: 13", b"", b""),
    )
)
Receive = Callable[[], Awaitable[Any]]
Handle = Callable[[Receive], Awaitable[None]]


class Wire(asyncio.Transport):
    """Gives its protocol what the client has sent, for as long as that wants to read."""

    def __init__(self, *, reads: bool = True) -> None:
        """The client `reads` what it is sent."""
        super().__init__()
        self.reads = reads
        self.sent = bytearray()
        """By the client, and not taken from the wire."""
        self.received = bytearray()
        self.unread = 0
        self.most_untaken = 0
        """Of the bytes that the protocol kept for later."""
        self.aborted = False
        self._reading = True
        self._high = self._low = 0
        self._full = False
        self.loop = asyncio.get_event_loop()
        self.protocol: Any

    def get_protocol(self) -> Any:
        return self.protocol

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def send(self, data: bytes) -> None:
        self.sent += data
        self.loop.call_soon(self._give)

    def read(self) -> None:
        """The client reads all, and from now on."""
        self.reads, self.unread = True, 0
        if self._full:
            self._full = False
            self.protocol.resume_writing()

    def _give(self) -> None:
        if self._reading and self.sent and not self.aborted:
            data = bytes(self.sent[:AT_ONCE])
            del self.sent[:AT_ONCE]
            self.protocol.data_received(data)
            self.most_untaken = max(self.most_untaken, len(self.protocol.untaken))
            self.loop.call_soon(self._give)

    def write(self, data: Any) -> None:
        self.received += data
        self.unread += 0 if self.reads else len(data)
        if self.unread > self._high and not self._full:
            self._full = True
            self.protocol.pause_writing()

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self.loop.call_soon(self._give)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or 0

    def get_write_buffer_size(self) -> int:
        return self.unread

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.aborted

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self.aborted:
            self.aborted = True
            self.loop.call_soon(self.protocol.connection_lost, None)


class Counted(PacedWebSocket):
    """Notes what it takes."""

    taken = 0
    weight = 0.0
    unserved = 0
    """Frames since others were served."""
    most = 0
    """The most of these."""

    def handle_events(self) -> None:
        for event in self.conn.events:
            if isinstance(event, Frame):
                self.taken += 1
                self.weight += 1 + len(event.data) / WEIGHT_BYTES
                if not self.unserved:
                    self.loop.call_soon(self._serve_others)
                self.unserved += 1
                self.most = max(self.most, self.unserved)
        super().handle_events()

    def _serve_others(self) -> None:
        self.unserved = 0


class Opened(PacedHttp):
    """A connection that notes its websocket."""

    websocket: Counted

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ws_protocol_class = self._open  # type: ignore[assignment]

    def _open(self, **arguments: Any) -> Counted:
        self.websocket = Counted(**arguments)
        return self.websocket


async def receive_all(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass


def connected(wire: Wire, handle: Handle = receive_all, state: ServerState | None = None) -> Opened:
    """A connection at the other end of the wire."""

    async def application(scope: Any, receive: Receive, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body"})
            return
        await receive()
        scope["extensions"][EXTENSION].keep_to(LIMITS, lambda: None)
        await send({"type": "websocket.accept"})
        await handle(receive)

    config = Config(application, log_config=None, ws_per_message_deflate=False)
    config.load()
    wire.protocol = connection = Opened(config, state or ServerState(), {}, wire.loop)
    connection.connection_made(wire)
    return connection


def frame(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


EMPTY_PIECE = frame(Opcode.CONT, fin=False)
BEGINNING = frame(Opcode.TEXT, b"{", fin=False)
FLOODS: dict[str, tuple[bytes, Sequence[bytes]]] = {
    "pings": (b"", [frame(Opcode.PING)]),
    "full pings": (b"", [frame(Opcode.PING, b"x" * 125)]),
    "pongs": (b"", [frame(Opcode.PONG)]),
    "pings and pongs": (b"", [frame(Opcode.PONG, b"a"), frame(Opcode.PING, b"b")]),
    "empty messages": (b"", [frame(Opcode.TEXT)]),
    "empty binary messages": (b"", [frame(Opcode.BINARY)]),
    "small messages": (b"", [frame(Opcode.TEXT, b"{}")]),
    "messages in pieces": (b"", [BEGINNING, *[EMPTY_PIECE] * 50, frame(Opcode.CONT, b"}")]),
    "a message without an end": (BEGINNING, [EMPTY_PIECE]),
    "pings in a message": (BEGINNING, [frame(Opcode.PING, b"?"), EMPTY_PIECE]),
    "large messages": (b"", [frame(Opcode.TEXT, b" " * 200_000)]),
    "messages and pings": (b"", [frame(Opcode.BINARY, b"  "), frame(Opcode.PING)]),
}


def flood(kind: str, count: int) -> bytes:
    first, frames = FLOODS[kind]
    return OPENING + first + b"".join(islice(cycle(frames), count))


@pytest.mark.parametrize("kind", FLOODS)
async def test_no_more_is_taken_than_the_client_may_send(kind: str) -> None:
    wire = Wire()
    connection = connected(wire)
    wire.send(flood(kind, 2000))
    # The last piece may be of frames that are small, or the end of one that is not.
    longest = max(map(len, FLOODS[kind][1]))
    slack = PIECE / 6 + longest / WEIGHT_BYTES + 2
    await anyio.sleep(0.1)
    counted = connection.websocket
    for seconds in (0.0, 1.0, 9.0, 40.0):
        begun = anyio.current_time()
        await anyio.sleep(seconds)
        assert anyio.current_time() - begun == pytest.approx(seconds)
        passed = anyio.current_time()
        most = LIMITS.messages_burst + LIMITS.messages_per_s * passed + slack
        assert counted.weight <= most
    assert counted.weight >= LIMITS.messages_burst + 40 * LIMITS.messages_per_s
    assert counted.most <= PIECE / 6 + 1
    assert wire.most_untaken <= AT_ONCE


@pytest.mark.parametrize("kind", ["full pings", "pings in a message", "messages and pings"])
async def test_who_does_not_read_is_not_answered_without_end(kind: str) -> None:
    wire = Wire(reads=False)
    connection = connected(wire)
    count = 4 * UNREAD_BYTES // 120
    wire.send(flood(kind, count))
    await anyio.sleep(3600 * 24)
    if kind == "full pings":
        assert UNREAD_BYTES < wire.unread <= UNREAD_BYTES + PIECE
        taken = connection.websocket.taken
        await anyio.sleep(3600)
        assert connection.websocket.taken == taken
    assert wire.unread <= UNREAD_BYTES + PIECE
    wire.read()
    await anyio.sleep(3600 * 24)
    assert connection.websocket.taken >= min(count, 4096)
    assert not wire.sent


async def test_while_a_message_waits_nothing_is_taken() -> None:
    wire = Wire()

    async def handle(receive: Receive) -> None:
        await anyio.sleep_forever()

    connection = connected(wire, handle)
    message = frame(Opcode.TEXT, b" " * 1_000_000)
    wire.send(OPENING + message * 8)
    await anyio.sleep(3600)
    assert connection.websocket.taken == 1
    assert len(wire.sent) >= 7 * len(message) - AT_ONCE
    wire.abort()
    await anyio.sleep(1)


async def test_who_does_not_complete_a_request_is_closed() -> None:
    wire = Wire()
    connected(wire)
    for _ in range(round(OPENING_S) - 1):
        wire.send(b"GET / HTTP/1.1\r\nX:" if not wire.received else b"a")
        await anyio.sleep(1)
    assert not wire.aborted
    await anyio.sleep(1.01)
    assert wire.aborted


@pytest.mark.parametrize("behind", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 9])
async def test_a_connection_has_one_request(behind: bytes) -> None:
    wire = Wire()
    connected(wire)
    wire.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + behind)
    await anyio.sleep(0.1)
    assert wire.received.count(b"HTTP/1.1 200 ") == 1
    assert wire.received.lower().count(b"connection: close") == 1
    assert wire.aborted


async def test_a_line_that_the_websocket_cannot_read_is_refused() -> None:
    wire = Wire()
    connected(wire)
    wire.send(OPENING[:-2] + b"X: " + b"a" * 9000 + b"\r\n\r\n")
    await anyio.sleep(0.1)
    assert wire.received.startswith(b"HTTP/1.1 431 ")
    assert wire.aborted


@given(st.binary(max_size=3000) | st.just(OPENING) | st.just(b"\x89\x80\0\0\0\0"))
def test_a_request_is_answered_first_whatever_comes_behind_it(behind: bytes) -> None:
    async def main() -> None:
        wire = Wire()
        connected(wire)
        wire.send(OPENING + behind)
        await anyio.sleep(1)
        assert wire.received.startswith(b"HTTP/1.1 101 ")
        wire.abort()
        await anyio.sleep(1)

    VirtualClock().run(main)


async def test_of_those_who_do_not_say_what_for_the_oldest_go() -> None:
    state = ServerState()
    wires = [Wire() for _ in range(NEWCOMERS + 20)]
    for wire in wires[:40]:
        connected(wire, state=state)
    for wire in wires[10:20]:
        wire.send(OPENING)  # who has a socket is none of them
    await anyio.sleep(1)
    for wire in wires[40:]:
        connected(wire, state=state)
    await anyio.sleep(1)
    assert [wire.aborted for wire in wires[:21]] == [True] * 10 + [False] * 11
    assert len(state.connections) == NEWCOMERS + 10
    for wire in wires:
        wire.abort()
    await anyio.sleep(1)
    assert not state.connections


# --- an honest client ---------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=50) | st.sampled_from(["x" * 5000])


@st.composite
def spoken(draw: st.DrawFn) -> tuple[list[str], bytes, list[bytes]]:
    """Messages, the bytes that carry them, in pieces and with pings between; and the pings."""
    messages = draw(st.lists(texts, max_size=30))
    data, pings = bytearray(), list[bytes]()
    for message in messages:
        whole = message.encode()
        cut = draw(st.integers(0, len(whole)))
        if draw(st.booleans()):
            data += frame(Opcode.TEXT, whole[:cut], fin=False)
            if draw(st.booleans()):
                pings.append(b"%d" % len(pings))
                data += frame(Opcode.PING, pings[-1])
            data += frame(Opcode.CONT, whole[cut:])
        else:
            data += frame(Opcode.TEXT, whole)
    return messages, bytes(data), pings


@given(spoken(), st.lists(st.integers(1, 4 * PIECE), min_size=1, max_size=5))
def test_whatever_is_sent_arrives_in_order(
    said: tuple[list[str], bytes, list[bytes]], sizes: list[int]
) -> None:
    messages, data, pings = said

    async def main() -> None:
        got = list[str | bytes]()

        async def handle(receive: Receive) -> None:
            while "text" in (message := await receive()):
                got.append(message["text"])
                await anyio.sleep(0.01)

        wire = Wire()
        connected(wire, handle)
        wire.send(OPENING)
        await anyio.sleep(1)
        opened, left = len(wire.received), data
        for size in cycle(sizes):
            if not left:
                break
            wire.send(left[:size])
            left = left[size:]
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(100)
        assert got == messages
        pongs = b"".join(Frame(Opcode.PONG, ping).serialize(mask=False) for ping in pings)
        assert wire.received[opened:] == pongs
        wire.abort()
        await anyio.sleep(1)

    VirtualClock().run(partial(main))
