"""The server: one port for the page and the socket, and the models that all sessions share.

Each connection is a task of the websockets library's, and runs in its own cancel scopes; what they
share is here: places for sessions, sessions whose client may come back, metrics, and the models
with their threads. Whoever may not come in is refused before a socket is opened.
"""

from __future__ import annotations

import logging
import signal
import ssl
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from random import SystemRandom
from urllib.parse import unquote

import anyio
import anyio.to_thread
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from voiceloop.calibration.idle import calibrate_in_idle_time
from voiceloop.calibration.keeping import cache_folder
from voiceloop.config import Config, ServerConfig
from voiceloop.engines import Engines
from voiceloop.loading import load_vad
from voiceloop.realtime.client_events import MAX_BYTES
from voiceloop.realtime.ids import maker
from voiceloop.realtime.jsontext import MAX_CHARACTERS
from voiceloop.runner import ModelThread
from voiceloop.server.access import Access, Allowed, Binding, Refused
from voiceloop.server.connection import AWAY, Connection
from voiceloop.server.dialogue import Dialogue
from voiceloop.server.limits import Admission, Kind, Refusal, Ticket
from voiceloop.server.metrics import Metrics
from voiceloop.server.port import no_port
from voiceloop.server.replies import Reply, line, refusal, reply
from voiceloop.server.resume import Grant, Loss, Sessions
from voiceloop.server.samples import Samples
from voiceloop.server.static import Site
from voiceloop.types import TurnTrace

logger = logging.getLogger(__name__)

PATH = "/v1/realtime"
VOICES = "/v1/voices/"
OPENING_S = 10.0
"""A client that has not said what it wants by then is gone."""
DRAIN_S = 10.0
"""After SIGTERM, replies in progress may go on for so long."""
TRY_AGAIN = 1013
"""Close code."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and for whom the server is."""

    binding: Binding
    access: Access
    site: Site
    tls: ssl.SSLContext | None = None


class App:
    """The server while it runs."""

    def __init__(
        self, models: AbstractContextManager[Engines], config: Config, place: Place
    ) -> None:
        """`models` is entered on a thread while the page is there already, and left at the end."""
        self.metrics = Metrics()
        self.interrupted = False
        """It was told to end before the models were loaded."""
        self._models = models
        self._engines: Engines
        """There once `_loaded` says so, before which nobody gets a session."""
        self._samples: Samples
        self._loaded = False
        self._config = config
        self._limits: ServerConfig = config.server
        self._place = place
        self._new_id = maker(SystemRandom())
        self._admission = Admission(config.server)
        self._sessions: Sessions[Dialogue, Connection] = Sessions(
            config.server.resume_s, config.server.max_parked_per_key
        )
        self._tickets: dict[Dialogue, Ticket] = {}
        self._connections: set[Connection] = set()
        self._draining = False
        self._changed = anyio.Event()
        """Set, and replaced, when a turn or a connection is over."""

    @property
    def sessions(self) -> int:
        """Sessions that there are, connected and parked."""
        return len(self._admission)

    async def run(self, ready: Callable[[Server], None]) -> None:
        """Serve until SIGTERM or SIGINT, or until cancelled; `ready` is told when clients may come.

        Raises DeviceError where the port cannot be listened at, and what loading the models raises.
        """
        binding = self._place.binding
        longest = max(MAX_CHARACTERS, MAX_BYTES)
        try:
            opened = await serve(
                self._connect,
                binding.host or None,
                binding.port,
                ssl=self._place.tls,
                process_request=self._request,
                select_subprotocol=_subprotocol,
                compression=None,
                max_size=longest,
                max_queue=32,
                open_timeout=OPENING_S,
                ping_interval=None,  # see `Connection`
                server_header=None,
            )
        except OSError as error:
            raise no_port(binding, error) from error
        with ExitStack() as stack:
            async with opened as server, anyio.create_task_group() as tasks:
                tasks.start_soon(self._work, stack, lambda: ready(server))
                with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                    async for _ in signals:
                        break
                self.interrupted = not self._loaded
                await self._drain(server)
                tasks.cancel_scope.cancel()

    async def _work(self, stack: ExitStack, ready: Callable[[], None]) -> None:
        """Load the models, and do what is done beside the sessions."""
        load = partial(stack.enter_context, self._models)
        self._engines = await anyio.to_thread.run_sync(load, abandon_on_cancel=True)
        for runner in self._engines.runners:
            if isinstance(runner, ModelThread):
                runner.waited = self.metrics.waited
        self._samples = Samples(self._engines)
        self._loaded = True
        ready()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._expire)
            tasks.start_soon(calibrate_in_idle_time, self._engines, cache_folder())

    async def _drain(self, server: Server) -> None:
        """Let nobody in any more, let replies end, and then send everybody home."""
        self._draining = True
        server.close(close_connections=False)
        with anyio.move_on_after(DRAIN_S):
            while any(one.dialogue.responding for one in self._connections):
                await self._changed.wait()
        for connection in list(self._connections):
            connection.close(AWAY, "the server is going down")
        with anyio.move_on_after(DRAIN_S):
            while self._connections:
                await self._changed.wait()

    # ---- before there is a socket

    async def _request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request, or open a socket for it."""
        headers = list(request.headers.raw_items())
        answer = self._answered(request, headers)
        del connection
        if not isinstance(answer, Allowed):
            return _response(answer)
        voice = _voice(request.path)
        return None if voice is None else _response(await self._samples.answer(voice))

    def _answered(self, request: Request, headers: list[tuple[str, str]]) -> Reply | Allowed:
        access, path = self._place.access, request.path.partition("?")[0]
        called = access.host(headers)
        if isinstance(called, Refused):
            return self._refused(called)
        if path == "/healthz":
            return line(200, "alive")
        if path == "/readyz":
            return line(503, self._unready) if self._unready else line(200, "ready")
        voice = _voice(request.path)
        if path not in (PATH, "/metrics") and voice is None:
            return self._place.site.answer(request.method, request.path, headers, called)
        judged = access.judge(request.path, headers)
        if isinstance(judged, Refused):
            return self._refused(judged)
        if path == "/metrics":
            return reply(200, *self.metrics.render())
        upgrade = "upgrade" in {name.lower() for name, _ in headers}
        if voice is None and not upgrade:
            return line(426, "open a websocket here", more=(("Upgrade", "websocket"),))
        if self._unready:
            return line(503, self._unready)
        if voice is not None:
            return judged
        if self.sessions >= self._limits.max_sessions:
            self.metrics.refused(Kind.SESSIONS)
            return line(503, "all places are taken; try again when somebody has left")
        return judged

    @property
    def _unready(self) -> str:
        """Why nobody is let in; empty where somebody may be."""
        if self._draining:
            return "the server is going down"
        return "" if self._loaded else "the models are being loaded"

    def _refused(self, refused: Refused) -> Reply:
        self.metrics.refused(refused.reason)
        logger.info("a request was refused", extra={"reason": refused.reason.value})
        return refusal(refused)

    # ---- with one

    async def _connect(self, socket: ServerConnection) -> None:
        assert socket.request is not None, "it has been answered"
        headers = list(socket.request.headers.raw_items())
        allowed = self._place.access.judge(socket.request.path, headers)
        key = allowed.key if isinstance(allowed, Allowed) else None
        ticket = self._admission.admit(key)
        if isinstance(ticket, Refusal):
            self.metrics.refused(ticket.reason)
            await socket.close(TRY_AGAIN, ticket.text)
            return
        connection = Connection(
            socket, self._limits, self.metrics, self._new_id, key=key, lobby=self
        )
        self._tickets[connection.dialogue] = ticket
        self._connections.add(connection)
        self._count()
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            self._wake()
            with anyio.CancelScope(shield=True):
                await self._leave(connection)
            self._count()

    def _new_dialogue(self) -> Dialogue:
        engines = replace(self._engines, vad=load_vad(self._config))
        conversation = engines.llm.conversation()
        dialogue: Dialogue

        def ended(trace: TurnTrace) -> None:
            self.metrics.observe(trace)
            self._wake()
            for connection in self._connections:
                if connection.dialogue is dialogue:
                    connection.charge(Kind.GENERATED, trace.counters.get("tokens", 0))
                    connection.charge(Kind.PREFILL, trace.counters.get("tokens_read", 0))

        dialogue = Dialogue(
            engines,
            self._config,
            conversation,
            self._new_id,
            ended=ended,
            refused=self.metrics.refused_message,
        )
        return dialogue

    # ---- see `Lobby`

    def begin(self, own: Connection) -> Grant[Dialogue, Connection]:
        """A session for a new client."""
        return self._sessions.begin(own.key, self._new_dialogue(), own)

    def resume(
        self, token: str, own: Connection
    ) -> Grant[Dialogue, Connection] | Loss[Dialogue, Connection]:
        """The session that `token` is for."""
        found = self._sessions.resume(token, own.key, own, anyio.current_time())
        if isinstance(found, Loss):
            self.metrics.refused(found.reason)
        else:
            self._sessions.end(own.kept, own)
        self._count()
        return found

    def delivered(self, own: Connection) -> None:
        """The client has the newest token."""
        self._sessions.delivered(own.kept, own)

    async def forget(self, dialogue: Dialogue) -> None:
        """A session is over, and nothing runs in it any more."""
        self._admission.release(self._tickets.pop(dialogue))
        await self._engines.llm_runner.call(dialogue.close)

    async def _leave(self, connection: Connection) -> None:
        """The connection is over: its session waits for its client, or is over too."""
        now = anyio.current_time()
        if connection.resumable and self._limits.resume_s and not self._draining:
            over = self._sessions.park(connection.kept, connection, now)
        elif self._sessions.end(connection.kept, connection):
            over = [connection.dialogue]
        else:
            over = []
        for dialogue in over:
            await self.forget(dialogue)

    async def _expire(self) -> None:
        """End sessions whose client has not come back in time."""
        while True:
            await anyio.sleep(1.0)
            for dialogue in self._sessions.expire(anyio.current_time()):
                await self.forget(dialogue)
            self._count()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _count(self) -> None:
        self.metrics.sessions(connected=self._sessions.connected, parked=self._sessions.parked)


def _voice(target: str) -> str | None:
    """The voice that a request wants to hear."""
    path = target.partition("?")[0]
    return unquote(path.removeprefix(VOICES)) if path.startswith(VOICES) else None


def _subprotocol(
    connection: ServerConnection, offered: Sequence[Subprotocol]
) -> Subprotocol | None:
    del connection
    return Subprotocol("realtime") if "realtime" in offered else None


def _response(answer: Reply) -> Response:
    headers = Headers([*answer.headers, ("Date", formatdate(usegmt=True))])
    return Response(answer.status, HTTPStatus(answer.status).phrase, headers, answer.body)
