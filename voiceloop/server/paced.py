"""Websockets that read no faster than clients may send, and no faster than the server can process.

The websockets library takes all bytes that have come, answers every ping at once, and queues what
it has taken. Here it gets small pieces, and other tasks run between them. It gets none while a
message waits to be processed, while the client leaves many answers unread, or while the client has
sent more than it may. Bytes that are not taken stay on the client's machine.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

from websockets.asyncio.server import Server, ServerConnection
from websockets.frames import Frame
from websockets.http11 import Request, Response
from websockets.protocol import CONNECTING
from websockets.server import ServerProtocol

from voiceloop.config import ServerConfig
from voiceloop.server.limits import Bucket

PIECE = 2048
"""Maximum number of bytes that are taken at once. They contain at most 341 frames, about 3 ms of
work."""
WEIGHT_BYTES = 2**14
"""Number of bytes within a frame that count as one more frame, because long frames take longer to
process: up to 40 ms for the longest message."""
UNREAD_BYTES = 2**20
"""Bytes of pongs and answers that the client has not read, beyond which nothing more is taken."""
HEAD_BYTES = 2**15
"""Maximum size of a request with its headers, in bytes."""
NEWCOMERS = 256
"""Maximum number of connections that still wait for a websocket or a page. If there are more, the
oldest is closed."""


class Paced(ServerConnection):
    """A connection that takes bytes only at the rate that its client is allowed."""

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
        """`newcomers` are all connections of the server without a websocket, oldest first."""
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
        """Number of frames that the client may still send: messages, parts of messages, and
        pings."""
        self._head = 0
        """Number of bytes of the request so far."""
        self._untaken = bytearray()
        """Bytes that have come and were not taken yet. Reading is paused while there are any, so
        they are at most what the system delivers at once."""
        self._queue_full = False
        """Whether the library wants no more bytes, because a message waits to be processed."""
        self._next: asyncio.Handle | None = None
        """The scheduled call that takes the next piece; None if none is scheduled."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add the connection to the newcomers. Close the oldest if there are too many."""
        super().connection_made(transport)
        self.recv_messages.pause = self._pause
        self.recv_messages.resume = self._resume
        self._newcomers[self] = None
        if len(self._newcomers) > NEWCOMERS:
            oldest = next(iter(self._newcomers))
            oldest.welcome()
            oldest.transport.abort()

    def welcome(self) -> None:
        """Remove the connection from the newcomers."""
        self._newcomers.pop(self, None)

    async def handshake(self, *handlers: Any, **options: Any) -> None:
        """Answer the request, and then take what comes after it."""
        await super().handshake(*handlers, **options)
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the end. Bytes that were not taken are lost."""
        self.welcome()
        self._untaken.clear()
        if self._next is not None:
            self._next.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Queue bytes that have come, and begin to take them."""
        self._untaken += data
        if self._next is None:
            self._take()

    def eof_received(self) -> None:
        """Note that the client sends nothing more."""
        # Bytes can be left only with TLS. Without TLS, the end is not seen while reading is paused.
        self._untaken.clear()
        super().eof_received()

    def process_event(self, event: Request | Response | Frame) -> None:
        """Charge the client for a frame of any kind. A large frame counts as several."""
        if isinstance(event, Frame):
            self._rate.take(1 + len(event.data) / WEIGHT_BYTES, self.loop.time())
        super().process_event(event)

    def resume_writing(self) -> None:
        """Go on reading, since the client has read its answers."""
        super().resume_writing()
        self._go_on()

    def _pause(self) -> None:
        self._queue_full = True

    def _resume(self) -> None:
        self._queue_full = False
        self._go_on()

    def _take(self) -> None:
        """Take a piece of the bytes that have come."""
        self._next = None
        if not self._untaken:
            return
        # Line by line, so that nothing after a request is taken before the request is answered.
        line = 0 if self.request else self._untaken.find(b"\n", 0, PIECE) + 1
        piece = bytes(self._untaken[: line or PIECE])
        del self._untaken[: line or PIECE]
        super().data_received(piece)
        if self.protocol.close_expected():  # its frames are ignored, so only bytes can be charged
            self._rate.take(len(piece) / WEIGHT_BYTES, self.loop.time())
        if self.request is None:
            self._head += len(piece)
            if self._head > HEAD_BYTES and not self.protocol.close_expected():
                self._refuse()
        self._go_on()

    def _refuse(self) -> None:
        """Refuse a request that is too long."""
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        why = f"a request has {HEAD_BYTES} bytes at most\n"
        self.protocol.send_response(self.protocol.reject(status, why))
        self.send_data()

    def _go_on(self) -> None:
        """Schedule the call that takes the next piece. Pause reading while bytes wait or may not be
        taken, and resume it otherwise."""
        transport = cast("asyncio.Transport", self.transport)
        if self._next is not None or transport.is_closing():
            return
        unread = transport.get_write_buffer_size() > UNREAD_BYTES
        wait = self._rate.wait_s(0, self.loop.time())
        unanswered = self.request is not None and self.protocol.state is CONNECTING
        held = self._queue_full or unread or unanswered
        if held or wait:
            transport.pause_reading()
        if held:
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
