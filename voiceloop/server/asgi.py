"""The service as an ASGI application, for servers such as uvicorn.

    uvicorn voiceloop.server.asgi:app --port 8765

The options are those of `voiceloop serve`, in the environment variable VOICELOOP_OPTIONS. The
server that runs the application handles the port, TLS, signals, and the pings by which it notices
that a client has gone. Wherever it listens, without keys only this machine may connect. In an
application of your own, `Application.of` takes the options, and `open` keeps the models loaded:

    voice = Application.of("--preset", "cpu", "--port", "8000")
    site = FastAPI(lifespan=lambda _: voice.open())
    site.mount("/", voice)

The protocol is ASGI 3.0 (https://asgi.readthedocs.io/en/stable/specs/), with the extension
`websocket.http.response` where the server has it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote

import anyio

from voiceloop import startup
from voiceloop.errors import ConfigError, VoiceloopError, first_cause
from voiceloop.flags import Help, parse
from voiceloop.server.auth import PROTOCOL
from voiceloop.server.closecodes import POLICY
from voiceloop.server.command import Serve, service_of
from voiceloop.server.connection import Disconnected
from voiceloop.server.http import HttpResponse
from voiceloop.server.routes import HttpRequest
from voiceloop.server.service import Service

VARIABLE = "VOICELOOP_OPTIONS"

Scope = Mapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiSocket:
    """A websocket of the ASGI server; implements `service.Socket`."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._gone = False

    async def receive(self) -> str | bytes:
        """Return the client's next message. Raises Disconnected if none will come."""
        if self._gone:
            raise Disconnected
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._gone = True
            raise Disconnected
        text = message.get("text")
        return message["bytes"] if text is None else text

    async def send(self, message: str | bytes) -> None:
        """Send `message`. Raises Disconnected if nothing can be sent."""
        kind = "text" if isinstance(message, str) else "bytes"
        try:
            await self._send({"type": "websocket.send", kind: message})
        except (OSError, RuntimeError) as error:  # which of them is up to the server
            raise Disconnected from error

    async def close(self, code: int, reason: str) -> None:
        """Close the websocket, unless the client has."""
        with suppress(OSError, RuntimeError):
            if not self._gone:
                await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def vanished(self, ping_s: float) -> None:
        """Wait for ever: the ASGI server sends the pings, and ends the websocket itself."""
        await anyio.sleep_forever()


class Application:
    """The ASGI application of one service."""

    def __init__(self, make: Callable[[], Service]) -> None:
        """`make` makes the service when the application is opened."""
        self._make = make
        self.service: Service | None = None
        """The service, once the application has been opened."""

    @classmethod
    def of(cls, *options: str) -> Application:
        """Return the application with these options of `voiceloop serve`.

        It does not change the signals, the environment or the log of the process. To set the thread
        counts as `voiceloop serve` does, call `voiceloop.startup.configure` first.
        """
        return cls(lambda: service_of(command_of(options)))

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Keep the models loaded while the context lasts. At its end, end the conversations, then
        free the models.

        Raises ConfigError for wrong options, and the errors of loading the models.
        """
        service, ready = self._make(), anyio.Event()
        self.service = service
        async with service.open(ready.set):
            await ready.wait()
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await service.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the start and the end of the ASGI server, a request, or a websocket."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        service = self.service
        if service is None:
            raise RuntimeError("voiceloop is not open: enter `Application.open` in your lifespan")
        request = _request_of(scope)
        if scope["type"] == "websocket":
            await receive()  # the event `websocket.connect`
        response = await service.answer(request)
        if response is not None:
            await _respond(response, scope, send)
            return
        offered = scope.get("subprotocols", ())
        spoken = PROTOCOL if PROTOCOL in offered else None
        await send({"type": "websocket.accept", "subprotocol": spoken})
        await service.serve(AsgiSocket(receive, send), request)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self.open():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as raised:
            error = first_cause(raised)
            if not isinstance(error, VoiceloopError):
                raise
            await send({"type": "lifespan.startup.failed", "message": f"{error}; {error.hint}"})
            return
        await send({"type": "lifespan.shutdown.complete"})


def _request_of(scope: Scope) -> HttpRequest:
    """Return the request that `scope` describes. Its target is percent-encoded, as the client sent
    it, and lacks the path at which the application is mounted."""
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    path = path.removeprefix(scope.get("root_path", "").encode())
    query = scope.get("query_string", b"")
    target = (path + b"?" + query if query else path).decode("latin-1")
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    ]
    peer = scope.get("client") or ("",)
    return HttpRequest(scope.get("method", "GET"), target, headers, str(peer[0]))


async def _respond(response: HttpResponse, scope: Scope, send: Send) -> None:
    """Send a response to a request or to a websocket handshake. If the ASGI server cannot answer a
    handshake with a response, close the websocket instead."""
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": POLICY, "reason": response.phrase})
            return
        kind = "websocket.http.response"
    # The ASGI server decides whether the connection stays open.
    headers = [
        (name.lower().encode(), value.encode())
        for name, value in response.headers
        if name != "Connection"
    ]
    await send({"type": f"{kind}.start", "status": response.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": response.body})


def command_of(options: Sequence[str]) -> Serve:
    """Return the command with these options of `voiceloop serve`. Raises ConfigError."""
    command = parse({"serve": Serve}, ["serve", *options])
    if isinstance(command, Help):
        raise ConfigError(f"{VARIABLE} asks for help", "type `voiceloop serve --help`")
    return command


def own_service() -> Service:
    """Make the service for a process that runs nothing else. The options are in the environment
    variable VOICELOOP_OPTIONS."""
    command = command_of(shlex.split(os.environ.get(VARIABLE, "")))
    startup.configure(command.settings.threads)
    return service_of(command, alone=True)


app = Application(own_service)
"""The application of a process that runs nothing else."""
