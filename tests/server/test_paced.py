"""Clients that send what they like as fast as they can, over a transport that is the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle, islice
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import Server
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from tests.support.clock import VirtualClock
from voiceloop.config import ServerConfig
from voiceloop.server.paced import (
    HEAD_BYTES,
    NEWCOMERS,
    PIECE,
    UNREAD_BYTES,
    WEIGHT_BYTES,
    Paced,
)

pytestmark = pytest.mark.virtual

AT_ONCE = 250_000
"""Bytes that the event loop hands over in one go."""
LIMITS = ServerConfig(messages_burst=100, messages_per_s=20)
OPENING = b"\r\n".join(
    (
        *(b"GET / HTTP/1.1", b"Host: localhost", b"Upgrade: websocket", b"Connection: Upgrade"),
        *(b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", b"Sec-WebSocket-Version: 13", b"", b""),
    )
)
Handle = Callable[["Counted"], Any]


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
        self.aborted = False
        self._reading = True
        self._high = self._low = 0
        self._full = False
        self.protocol: Paced

    def send(self, data: bytes) -> None:
        self.sent += data
        self.protocol.loop.call_soon(self._give)

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
            self.protocol.loop.call_soon(self._give)

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
        self.protocol.loop.call_soon(self._give)

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

    def abort(self) -> None:
        if not self.aborted:
            self.aborted = True
            self.protocol.loop.call_soon(self.protocol.connection_lost, None)


class Counted(Paced):
    """Notes what it takes."""

    frames = 0
    weight = 0.0
    unserved = 0
    """Frames since others were served."""
    most = 0
    """The most of these."""

    def process_event(self, event: Request | Response | Frame) -> None:
        if isinstance(event, Frame):
            self.frames += 1
            self.weight += 1 + len(event.data) / WEIGHT_BYTES
            if not self.unserved:
                self.loop.call_soon(self._serve_others)
            self.unserved += 1
            self.most = max(self.most, self.unserved)
        super().process_event(event)

    def _serve_others(self) -> None:
        self.unserved = 0


class Listening:
    """As much of the library's server as a connection asks of it."""

    def __init__(self, handle: Handle) -> None:
        self.handler_tasks = set[asyncio.Task[None]]()
        self._handle = handle

    def is_serving(self) -> bool:
        return True

    async def handler(self, connection: Counted) -> None:
        await connection.handshake()
        if connection.response and connection.response.status_code == 101:
            with suppress(ConnectionClosed):
                await self._handle(connection)


async def receive_all(connection: Counted) -> None:
    async for _ in connection:
        pass


def connected(
    wire: Wire, handle: Handle = receive_all, newcomers: dict[Paced, None] | None = None
) -> Counted:
    """A connection at the other end of the wire."""
    protocol = ServerProtocol(max_size=4 * 2**20)
    wire.protocol = connection = Counted(
        protocol,
        cast(Server, Listening(handle)),
        limits=LIMITS,
        newcomers={} if newcomers is None else newcomers,
        ping_interval=None,
        ping_timeout=None,
        close_timeout=1,
        max_queue=0,
        write_limit=2**15,
    )
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
    for seconds in (0.0, 1.0, 9.0, 40.0):
        begun = anyio.current_time()
        await anyio.sleep(seconds)
        assert anyio.current_time() - begun == pytest.approx(seconds)
        passed = anyio.current_time()
        most = LIMITS.messages_burst + LIMITS.messages_per_s * passed + slack
        assert connection.weight <= most
    assert connection.weight >= LIMITS.messages_burst + 40 * LIMITS.messages_per_s
    assert connection.most <= PIECE / 6 + 1


@pytest.mark.parametrize("kind", ["full pings", "pings in a message", "messages and pings"])
async def test_who_does_not_read_is_not_answered_without_end(kind: str) -> None:
    wire = Wire(reads=False)
    connection = connected(wire)
    count = 4 * UNREAD_BYTES // 120
    wire.send(flood(kind, count))
    await anyio.sleep(3600 * 24)
    if kind == "full pings":
        assert UNREAD_BYTES < wire.unread <= UNREAD_BYTES + PIECE
        taken = connection.frames
        await anyio.sleep(3600)
        assert connection.frames == taken
    assert wire.unread <= UNREAD_BYTES + PIECE
    wire.read()
    await anyio.sleep(3600 * 24)
    assert connection.frames >= min(count, 4096)
    assert not wire.sent


async def test_while_a_message_waits_nothing_is_taken() -> None:
    wire = Wire()

    async def handle(connection: Counted) -> None:
        await connection.wait_closed()

    connection = connected(wire, handle)
    message = frame(Opcode.TEXT, b" " * 1_000_000)
    wire.send(OPENING + message * 8)
    await anyio.sleep(3600)
    assert connection.frames == 1
    assert len(wire.sent) >= 7 * len(message) - AT_ONCE
    wire.abort()
    await anyio.sleep(1)


@pytest.mark.parametrize(
    "head",
    {
        "many headers": b"X: " + b"a" * 1000 + b"\r\n",
        "long headers": b"X: " + b"a" * 8000 + b"\r\n",
        "small headers": b"X:\r\n",
        "no end of a line": b"a",
        "cookies": b"Cookie: " + b"c" * 4000 + b"\r\n",
    }.values(),
)
async def test_a_request_has_an_end(head: bytes) -> None:
    wire = Wire()
    connected(wire)
    wire.send(b"GET / HTTP/1.1\r\n" + head * (10**6 // len(head)))
    await anyio.sleep(1)
    status = int(wire.received.split()[1])
    assert status in (414, 431)
    # Nor does anybody who has been answered have more taken than others.
    wire.send(b"a" * 100 * LIMITS.messages_burst * WEIGHT_BYTES)
    await anyio.sleep(1)
    left = len(wire.sent)
    await anyio.sleep(60)
    taken = 60 * LIMITS.messages_per_s * WEIGHT_BYTES
    assert 0.9 * taken - AT_ONCE <= left - len(wire.sent) <= 1.1 * taken + AT_ONCE
    wire.abort()
    await anyio.sleep(1)


async def test_a_request_as_long_as_it_may_be_is_read() -> None:
    wire = Wire()
    connected(wire)
    room = HEAD_BYTES - PIECE - len(OPENING)
    line, headers = OPENING.split(b"\r\n", 1)
    wire.send(line + b"\r\n" + (b"X: " + b"a" * 995 + b"\r\n") * (room // 1000) + headers)
    await anyio.sleep(1)
    assert wire.received.startswith(b"HTTP/1.1 101 ")


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
    newcomers: dict[Paced, None] = {}
    wires = [Wire() for _ in range(NEWCOMERS + 20)]
    made = [connected(wire, newcomers=newcomers) for wire in wires[:40]]
    for connection in made[10:20]:
        connection.welcome()  # who has a socket is none of them
    for wire in wires[40:]:
        connected(wire, newcomers=newcomers)
    await anyio.sleep(1)
    assert [wire.aborted for wire in wires[:21]] == [True] * 10 + [False] * 11
    assert len(newcomers) == NEWCOMERS
    for wire in wires:
        wire.abort()
    await anyio.sleep(1)
    assert not newcomers


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

        async def handle(connection: Counted) -> None:
            async for message in connection:
                got.append(message)
                await anyio.sleep(0.01)

        wire = Wire()
        connection = connected(wire, handle)
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
        await connection.wait_closed()

    VirtualClock().run(partial(main))
