"""The service as an ASGI application, for servers such as uvicorn.

    uvicorn voiceloop.server.asgi:app --port 8765 --http voiceloop.server.paced:PacedHttp

The options are those of `voiceloop serve`, in the environment variable VOICELOOP_OPTIONS. The
server that runs the application handles the port, TLS and signals. Wherever it listens, without
keys only this machine may connect. In an application of your own, `Application.of` takes the
options, and `open` keeps the models loaded:

    voice = Application.of("--preset", "cpu", "--port", "8000")
    site = FastAPI(lifespan=lambda _: voice.open())
    site.mount("/", voice)

Limits of what is read, and pings, need uvicorn with the protocols of `voiceloop.server.paced`. The
protocol is ASGI 3.0 (https://asgi.readthedocs.io/en/stable/specs/), with the extension
`websocket.http.response` where the server has it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from urllib.parse import quote

import anyio
from starlette.types import Receive, Scope, Send

from voiceloop import process
from voiceloop.errors import ConfigError, VoiceloopError, first_cause
from voiceloop.server.access.auth import PROTOCOL
from voiceloop.server.access.limits import POLICY
from voiceloop.server.command import Serve, service_of
from voiceloop.server.paced import EXTENSION, PacedWebSocket
from voiceloop.server.routes import HttpRequest
from voiceloop.server.service import Service
from voiceloop.server.session.connection import Disconnected
from voiceloop.settings.flags import Help, parse

VARIABLE = "VOICELOOP_OPTIONS"


class AsgiSocket:
    """A websocket of the ASGI server; implements `service.Socket`."""

    def __init__(self, receive: Receive, send: Send, paced: PacedWebSocket | None) -> None:
        self._receive = receive
        self._send = send
        self._paced = paced
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

    async def vanished(self) -> None:
        """Wait until the client gives no sign of life. If the ASGI server does not pace its
        websockets, it sends the pings and ends the websocket itself: then wait for ever."""
        await (anyio.sleep_forever() if self._paced is None else self._paced.vanished.wait())


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
        counts as `voiceloop serve` does, call `voiceloop.process.configure` first.
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
        extensions = scope.get("extensions") or {}
        if scope["type"] == "websocket":
            await receive()  # the event `websocket.connect`
        response = await service.answer(request)
        if response is None:
            paced: PacedWebSocket | None = extensions.get(EXTENSION)
            if paced:
                paced.keep_to(service.limits, service.end)
            spoken = PROTOCOL if PROTOCOL in scope.get("subprotocols", ()) else None
            await send({"type": "websocket.accept", "subprotocol": spoken})
            await service.serve(AsgiSocket(receive, send, paced), request)
        elif scope["type"] == "websocket" and "websocket.http.response" not in extensions:
            reason = HTTPStatus(response.status_code).phrase
            await send({"type": "websocket.close", "code": POLICY, "reason": reason})
        else:
            await response(scope, receive, send)

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
    websocket = scope["type"] == "websocket"
    return HttpRequest(scope.get("method", "GET"), target, headers, str(peer[0]), websocket)


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
    process.configure(command.settings.threads)
    return service_of(command, alone=True)


app = Application(own_service)
"""The application of a process that runs nothing else."""
