"""Websockets by the websockets library: the port, its requests, and the sockets of clients.

Only this module and `paced` depend on the library. Neither knows the paths of requests, nor the
meaning of messages.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from email.utils import formatdate
from functools import partial
from typing import cast

import anyio
from websockets import http11
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from voiceloop.config import ServerConfig
from voiceloop.server.auth import PROTOCOL
from voiceloop.server.connection import GOODBYE_S, Disconnected
from voiceloop.server.http import HttpResponse
from voiceloop.server.paced import Paced
from voiceloop.server.port import Binding, no_port
from voiceloop.server.routes import HttpRequest
from voiceloop.wire.client_events import MAX_BYTES
from voiceloop.wire.jsontext import MAX_CHARACTERS

OPENING_S = 10.0
"""Seconds after which a client that has not completed its request is disconnected."""


class WebSocket:
    """One client's websocket; implements `service.Socket`."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self._heard = True
        """Whether a message has come since the last ping."""

    async def receive(self) -> str | bytes:
        """Return the client's next message. Raises Disconnected if none will come."""
        try:
            message = await self._socket.recv()
        except ConnectionClosed as error:
            raise Disconnected from error
        self._heard = True
        return message

    async def send(self, message: str | bytes) -> None:
        """Send `message`. Raises Disconnected if nothing can be sent."""
        try:
            await self._socket.send(message)
        except ConnectionClosed as error:
            raise Disconnected from error

    async def close(self, code: int, reason: str) -> None:
        """Close the websocket in agreement with the client, if it is still there."""
        await self._socket.close(code, reason)

    async def vanished(self, ping_s: float) -> None:
        """Wait until the client is no longer there.

        A client that is there sends a message, or answers a ping, within `ping_s` seconds. That
        time includes sending the ping, which waits behind data that the client does not read.
        """
        while True:
            await anyio.sleep(ping_s)
            self._heard = False
            with suppress(ConnectionClosed), anyio.move_on_after(ping_s) as scope:
                await (await self._socket.ping())
            if scope.cancelled_caught and not self._heard:
                return


@asynccontextmanager
async def listening(
    binding: Binding,
    tls: ssl.SSLContext | None,
    limits: ServerConfig,
    answer: Callable[[HttpRequest], Awaitable[HttpResponse | None]],
    connect: Callable[[WebSocket, HttpRequest], Awaitable[None]],
) -> AsyncGenerator[Callable[[], object]]:
    """Keep the port open while the context lasts. Yield a function that stops the server from
    accepting new connections.

    A request gets the response that `answer` returns. If `answer` returns None, the request gets a
    websocket, which lasts as long as `connect` runs. Raises DeviceError if the port cannot be
    opened.
    """

    async def process(socket: ServerConnection, request: http11.Request) -> http11.Response | None:
        reply = await answer(_request_of(request, socket))
        if reply is None:
            return None
        headers = Headers([*reply.headers, ("Date", formatdate(usegmt=True))])
        return http11.Response(reply.status, reply.phrase, headers, reply.body)

    async def handle(socket: ServerConnection) -> None:
        assert isinstance(socket, Paced)
        assert socket.request is not None, "it has been answered"
        socket.welcome()
        await connect(WebSocket(socket), _request_of(socket.request, socket))

    try:
        opened = await serve(
            handle,
            binding.host or None,
            binding.port,
            ssl=tls,
            process_request=process,
            select_subprotocol=_select,
            compression=None,
            max_size=max(MAX_CHARACTERS, MAX_BYTES),
            max_queue=0,  # a message can have megabytes: take none while one waits
            open_timeout=OPENING_S,
            close_timeout=GOODBYE_S,
            ping_interval=None,  # `vanished` sends the pings
            server_header=None,
            create_connection=cast(
                "type[ServerConnection]", partial(Paced, limits=limits, newcomers={})
            ),
        )
    except OSError as error:
        raise no_port(binding, error) from error
    async with opened as server:
        yield partial(server.close, close_connections=False)


def _request_of(request: http11.Request, socket: ServerConnection) -> HttpRequest:
    # uvloop cannot tell the address of a client that has gone already.
    peer = None if socket.transport.is_closing() else socket.remote_address
    headers = list(request.headers.raw_items())
    return HttpRequest(request.method, request.path, headers, str(peer[0]) if peer else "")


def _select(socket: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    del socket
    return Subprotocol(PROTOCOL) if PROTOCOL in offered else None
