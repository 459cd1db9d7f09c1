"""uvicorn's protocols, made to read no faster than clients may send and the server can process.

uvicorn takes all bytes that have come, answers every ping at once, and queues what it has taken.
Here it gets small pieces, and other tasks run between them. It gets none while a message waits to
be processed, while the client leaves many answers unread, or while the client has sent more than it
may. Bytes that are not taken stay on the client's machine.

`PacedHttp` reads requests and opens `PacedWebSocket`. Other applications' websockets are not paced:
the application that accepts one calls its `keep_to`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from voiceloop.server.access.limits import Bucket
from voiceloop.server.session.connection import GOODBYE_S
from voiceloop.settings.config import ServerConfig
from voiceloop.wire.parsing import MAX_BYTES, MAX_CHARACTERS

EXTENSION = "voiceloop.paced"
"""Name of the ASGI extension by which an application finds the `PacedWebSocket` below it."""
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
OPENING_S = 10.0
"""Seconds after which a connection without a websocket is closed."""
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n"
    b"Content-Length: 47\r\n\r\na header of a websocket has 8192 bytes at most\n"
)
_NUMBERS = count()


class _Paced(asyncio.Protocol):
    """A protocol of uvicorn that takes bytes in pieces, when it may."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    in_lines = False
    """Whether pieces end at line ends, so that nothing behind a request is taken with it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.untaken = bytearray()
        """Bytes that have come and were not taken yet. Reading is paused while there are any, so
        they are at most what the system delivers at once."""
        self._next: asyncio.Handle | None = None
        """The scheduled call that takes the next piece; None if none is scheduled."""

    def wait_s(self) -> float | None:
        """Return the seconds until more may be taken; None while an event is waited for."""
        raise NotImplementedError

    def data_received(self, data: bytes) -> None:
        """Queue bytes that have come, and begin to take them."""
        self.untaken += data
        if self._next is None:
            self._take()
        else:
            self.transport.pause_reading()

    def eof_received(self) -> None:
        """Drop what was not taken, since the client sends nothing more."""
        # Bytes can be left only with TLS. Without TLS, the end is not seen while reading is paused.
        self.untaken.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the end. Bytes that were not taken are lost."""
        self.untaken.clear()
        if self._next is not None:
            self._next.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Go on reading, since the client has read its answers."""
        super().resume_writing()
        self.go_on()

    def _take(self) -> None:
        """Take a piece of the bytes that have come, if that is allowed now."""
        self._next = None
        if self.untaken and self.wait_s() == 0:
            line = self.untaken.find(b"\n", 0, PIECE) + 1 if self.in_lines else 0
            piece = bytes(self.untaken[: line or PIECE])
            del self.untaken[: line or PIECE]
            super().data_received(piece)
        self.go_on()

    def go_on(self) -> None:
        """Schedule the call that takes the next piece. Pause reading while bytes wait or may not be
        taken, and resume it otherwise."""
        if self.transport.is_closing():
            return
        wait = self.wait_s()
        if wait == 0 and not self.untaken:
            self.transport.resume_reading()
            return
        self.transport.pause_reading()  # uvicorn may have resumed it
        if wait is not None and self._next is None:
            self._next = self.loop.call_later(wait, self._take)


class PacedHttp(_Paced, H11Protocol):
    """A connection that reads one request, and is closed or becomes a websocket with its answer."""

    in_lines = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = h11.Connection(h11.SERVER, HEAD_BYTES)
        self.ws_protocol_class = PacedWebSocket
        self._number = next(_NUMBERS)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close the connection in `OPENING_S` seconds, and the oldest if there are too many."""
        super().connection_made(transport)
        self._end = self.loop.call_later(OPENING_S, transport.abort)
        others = [one for one in self.connections if isinstance(one, PacedHttp)]
        waiting = [one for one in others if not one.transport.is_closing()]
        if len(waiting) > NEWCOMERS:
            min(waiting, key=lambda one: one._number).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the end."""
        self._end.cancel()
        super().connection_lost(exc)

    def wait_s(self) -> float | None:
        """Return 0, or None once the request is complete: nothing that follows it is read."""
        return 0.0 if self.cycle is None else None

    def handle_events(self) -> None:
        """Answer a request that is complete, and say that the connection ends with the answer."""
        super().handle_events()
        if self.cycle is not None:  # the answer is written later
            self.cycle.default_headers = [*self.cycle.default_headers, CLOSE_HEADER]

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Pass the connection on to a websocket, with the bytes that came behind the request."""
        self._end.cancel()
        behind, self.untaken = self.untaken, bytearray()
        super().handle_websocket_upgrade(event)
        websocket = self.transport.get_protocol()
        assert isinstance(websocket, PacedWebSocket)
        if not self.transport.is_closing():
            websocket.data_received(bytes(behind))

    def go_on(self) -> None:
        """Take what follows, unless the connection is a websocket's by now."""
        if self.transport.get_protocol() is self:
            super().go_on()


class PacedWebSocket(_Paced, WebSocketsSansIOProtocol):
    """A websocket that takes frames at the rate that its client is allowed."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn.available_extensions = None  # a compressed frame weighs more than it seems to
        self.vanished = asyncio.Event()
        """Set once the client has neither answered a ping nor sent a message for too long."""
        self._heard = True
        """Whether a message has been received since the last ping."""
        self._rate: Bucket | None = None
        """Number of frames that the client may still send: messages, parts of messages, and pings.
        None if the application has set no limits."""
        self._ends: Callable[[], object] | None = None

    def keep_to(self, limits: ServerConfig, ends: Callable[[], object]) -> None:
        """Take no more than `limits` allow, and send pings. When uvicorn ends, call `ends` instead
        of closing the websocket. Call this before the websocket is accepted."""
        self._rate = Bucket(limits.messages_burst, limits.messages_per_s, self.loop.time())
        self.ping_interval = self.ping_timeout = limits.ping_s
        self.close_timeout = GOODBYE_S
        self.conn.max_message_size = max(MAX_CHARACTERS, MAX_BYTES)
        self._ends = ends

    def wait_s(self) -> float | None:
        """Return the seconds until the client may send more; None while it must wait for an answer,
        while a message waits to be processed, and while the client leaves answers unread."""
        answering = self.handshake_initiated and not self.handshake_complete
        unread = self.transport.get_write_buffer_size() > UNREAD_BYTES
        if answering or unread or self.read_paused:
            return None
        return self._rate.wait_s(0, self.loop.time()) if self._rate else 0.0

    def data_received(self, data: bytes) -> None:
        """Queue bytes that have come, and begin to take them. The first are the request."""
        if not self.handshake_initiated:
            super(_Paced, self).data_received(data)
            if not self.handshake_initiated:  # the websockets library cannot read it
                self.transport.write(TOO_LARGE)
                self.transport.close()
            return
        if self._rate and self.conn.close_expected():  # frames are ignored: only bytes are charged
            self._rate.take(len(data) / WEIGHT_BYTES, self.loop.time())
        super().data_received(data)

    def handle_events(self) -> None:
        """Charge the client for frames of any kind. A large frame counts as several."""
        frames = [event for event in self.conn.events if isinstance(event, Frame)]
        if self._rate and frames:
            weight = sum(1 + len(frame.data) / WEIGHT_BYTES for frame in frames)
            self._rate.take(weight, self.loop.time())
        super().handle_events()

    def handle_connect(self, event: Request) -> None:
        """Answer the request, and let the application find this protocol."""
        super().handle_connect(event)
        if not self.handshake_complete:  # otherwise it was refused
            self.scope["extensions"][EXTENSION] = self  # type: ignore[index]

    def send_receive_event_to_app(self) -> None:
        """Queue a message, or end the connection if it is text that is not UTF-8."""
        try:
            if self.curr_msg_data_type == "text":
                b"".join(self.frames).decode()
        except UnicodeDecodeError as error:  # uvicorn would log a traceback
            self.conn.fail(1007, f"{error.reason} at position {error.start}")
            self.handle_parser_exception()
            return
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """Tell the client why the connection ends, and give it time to read that."""
        if self.close_sent:
            return
        closed = self.conn.close_sent
        assert closed is not None
        event = {"type": "websocket.disconnect", "code": closed.code, "reason": closed.reason}
        self.queue.put_nowait(event)  # type: ignore[arg-type]
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    async def run_asgi(self) -> None:
        """Run the application. After it, a client that does not read is not waited for."""
        await super().run_asgi()
        if self._rate:
            self.loop.call_later(self.close_timeout, self.transport.abort)

    async def send(self, message: Any) -> None:
        """Send `message`, and take what had to wait for it."""
        await super().send(message)
        self.go_on()

    async def receive(self) -> Any:
        """Return the next message, and take what had to wait for it."""
        message = await super().receive()
        self._heard = True
        self.go_on()
        return message

    def send_keepalive_ping(self) -> None:
        """Send a ping, and note what is heard from now on."""
        self._heard = False
        super().send_keepalive_ping()

    def keepalive_timeout(self) -> None:
        """Send the next ping if a message has come, and otherwise set `vanished`."""
        self.pong_timer = self.pending_ping_payload = None
        if self._heard:  # its pong may wait behind its messages
            self.schedule_ping()
        else:
            self.vanished.set()

    def shutdown(self) -> None:
        """Let the application end its conversation, or close the websocket if it has none."""
        if self._ends is None:
            super().shutdown()
        else:
            self._ends()
