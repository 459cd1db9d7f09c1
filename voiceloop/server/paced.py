"""Sockets that are read no faster than their clients may send, and than the server can bear.

The websockets library takes all that has come at once, answers every ping at once, and lets what it
has taken wait. Here it is given small pieces, between which others are served; none while a message
waits to be looked at, while the client leaves unread what it was answered, or while it has sent
more than it may. What is not taken stays with the client's own machine.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import cast

from websockets.asyncio.server import Server, ServerConnection
from websockets.frames import Frame
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from voiceloop.config import ServerConfig
from voiceloop.server.limits import Bucket

PIECE = 2048
"""Bytes that are taken at once: up to 341 frames, which are some 3 ms of work."""
WEIGHT_BYTES = 2**14
"""So many bytes weigh as much as a frame: the longest message takes up to 40 ms."""
UNREAD_BYTES = 2**20
"""Pongs and answers in the socket, unread, with which nothing more is taken."""
HEAD_BYTES = 2**15
"""Longest request: its line and its headers."""
NEWCOMERS = 256
"""Connections that have not got a socket yet, nor read their page; the oldest goes first."""


class Paced(ServerConnection):
    """A connection that takes what comes at its client's rate."""

    def __init__(
        self,
        protocol: ServerProtocol,
        server: Server,
        *,
        limits: ServerConfig,
        newcomers: dict[Paced, None],
        ping_interval: float | None,
        ping_timeout: float | None,
        close_timeout: float | None,
        max_queue: int | tuple[int | None, int | None] | None,
        write_limit: int | tuple[int, int | None],
    ) -> None:
        """`newcomers` are all connections of the server that have no socket yet, in order."""
        super().__init__(
            protocol,
            server,
            ping_interval=ping_interval,
            ping_timeout=ping_timeout,
            close_timeout=close_timeout,
            max_queue=max_queue,
            write_limit=write_limit,
        )
        self._newcomers = newcomers
        self._rate = Bucket(limits.messages_burst, limits.messages_per_s, self.loop.time())
        """Frames that the client may send: messages, pings, and pieces of either."""
        self._head = 0
        """Bytes of the request so far."""
        self._untaken = bytearray()
        """What has come, less than the system gives at once."""
        self._queue_full = False
        self._next: asyncio.Handle | None = None
        """The next piece, while it is about to be taken."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has come; who came longest ago and has no socket yet may have to go."""
        super().connection_made(transport)
        self.recv_messages.pause = self._pause
        self.recv_messages.resume = self._resume
        self._newcomers[self] = None
        if len(self._newcomers) > NEWCOMERS:
            oldest = next(iter(self._newcomers))
            oldest.welcome()
            oldest.transport.abort()

    def welcome(self) -> None:
        """The client has its socket."""
        self._newcomers.pop(self, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over: what has not been taken is lost."""
        self.welcome()
        self._untaken.clear()
        if self._next is not None:
            self._next.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self._untaken += data
        if self._next is None:
            self._take()

    def eof_received(self) -> None:
        """The client says nothing more."""
        self._untaken.clear()  # where it is encrypted: else nothing comes that is not wanted yet
        super().eof_received()

    def process_event(self, event: Request | Response | Frame) -> None:
        """Note what a frame weighs, whatever it is."""
        if isinstance(event, Frame):
            self._rate.take(1 + len(event.data) / WEIGHT_BYTES, self.loop.time())
        super().process_event(event)

    def resume_writing(self) -> None:
        """The client has read what it was sent."""
        super().resume_writing()
        self._go_on()

    def _pause(self) -> None:
        self._queue_full = True

    def _resume(self) -> None:
        self._queue_full = False
        self._go_on()

    def _take(self) -> None:
        """Take a piece of what has come."""
        self._next = None
        if not self._untaken:
            return
        piece = bytes(self._untaken[:PIECE])
        del self._untaken[:PIECE]
        super().data_received(piece)
        if self.protocol.close_expected():  # and nobody looks at it any more
            self._rate.take(len(piece) / WEIGHT_BYTES, self.loop.time())
        if self.request is None:
            self._head += len(piece)
            if self._head > HEAD_BYTES and not self.protocol.close_expected():
                self._refuse()
        self._go_on()

    def _refuse(self) -> None:
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        why = f"a request has {HEAD_BYTES} bytes at most\n"
        self.protocol.send_response(self.protocol.reject(status, why))
        self.send_data()

    def _go_on(self) -> None:
        """Take the next piece as soon as it may be taken."""
        transport = cast("asyncio.Transport", self.transport)
        if self._next is not None or transport.is_closing():
            return
        unread = transport.get_write_buffer_size() > UNREAD_BYTES
        wait = self._rate.wait_s(0, self.loop.time())
        if self._queue_full or unread or wait:
            transport.pause_reading()
        if self._queue_full or unread:
            return
        if wait:
            self._next = self.loop.call_later(wait, self._after_wait)
        elif self._untaken:
            transport.pause_reading()
            self._next = self.loop.call_soon(self._take)
        else:
            transport.resume_reading()

    def _after_wait(self) -> None:
        self._next = None
        self._go_on()
