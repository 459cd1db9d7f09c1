"""The service: the models and the sessions of one server, and its answers to requests.

It knows neither a port nor signals nor a library of sockets. `voiceloop.server.asgi` has those: it
passes each request to `Service.answer`. If that returns None, it accepts a websocket and passes it
to `Service.serve`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread
from starlette.responses import Response

from voiceloop.calibration.idle import cache_folder, calibrate_in_idle_time
from voiceloop.engines import Engines
from voiceloop.runner import ModelThread
from voiceloop.server.access.auth import Access, Allowed
from voiceloop.server.access.limits import AWAY, INTERNAL, TRY_AGAIN, Refusal
from voiceloop.server.ops.logs import VISIT
from voiceloop.server.ops.metrics import Metrics
from voiceloop.server.resume.registry import SessionRegistry
from voiceloop.server.resume.store import Store
from voiceloop.server.routes import HttpRequest, Routes, Samples, Site
from voiceloop.server.session.connection import Connection, Transport
from voiceloop.server.session.offers import OfferedConversations, Offers
from voiceloop.settings.config import Config, McpServer, ServerConfig
from voiceloop.tools.servers import equipped
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.skills import unusable

if TYPE_CHECKING:
    from voiceloop.server.ops.telemetry import Telemetry

logger = logging.getLogger(__name__)

GOING = "the server is going down"
"""Reason for refusing a client, or for closing its connection, when the server ends."""
CLOSING_S = 10.0
"""Maximum seconds to wait for the connections to close when the server ends."""


class Socket(Transport, Protocol):
    """A transport that notices when its client is gone and has not closed the connection."""

    async def vanished(self) -> None:
        """Wait until the client has given no sign of life for `ping_s` seconds after a ping."""
        ...


class Service:
    """One server without a port and signals.

    It has many attributes: all that its connections share is here.
    """

    def __init__(
        self,
        models: AbstractContextManager[Engines],
        config: Config,
        access: Access,
        site: Site,
        store: Store,
        offers: Offers | None = None,
        telemetry: Telemetry | None = None,
        *,
        record: Path | None = None,
        calibrates: bool = True,
        toolbox: Toolbox = NO_TOOLS,
        servers: Mapping[str, McpServer] | None = None,
        conversations: OfferedConversations | None = None,
    ) -> None:
        """Keep the arguments. `open` enters the context manager `models` on a worker thread.

        When the server ends, `models` is exited and `store` is closed. With `record`, sessions are
        recorded in that folder. With `calibrates`, the
        language model is calibrated in idle time. The server's own assistant may call the tools in
        `toolbox` and those of the MCP `servers`. `conversations` are offered to clients on this
        machine."""
        self.metrics = Metrics()
        self._models = models
        self._config = config
        self._access = access
        self._store = store
        self._offers = offers
        self._telemetry = telemetry
        self._record = record
        self._calibrates = calibrates
        self._toolbox = toolbox
        self._servers = servers or {}
        self._conversations = conversations
        self._routes = Routes(
            access,
            site,
            self.metrics,
            full=lambda: self._registry is not None and self._registry.full,
        )
        self._registry: SessionRegistry | None = None
        """The session registry; None until the models are loaded. Until then no client gets a
        session."""
        self._connections: set[Connection] = set()
        self._numbers = count(1)
        """Numbers of client sessions, for the log."""
        self._ending = anyio.Event()
        self._changed = anyio.Event()
        """Set when a turn or a connection ends; then it is replaced by a new event."""

    @property
    def limits(self) -> ServerConfig:
        """The limits of clients."""
        return self._config.server

    @property
    def loaded(self) -> bool:
        """Whether the models are loaded."""
        return self._registry is not None

    @property
    def connections(self) -> int:
        """Number of clients that are connected."""
        return len(self._connections)

    @property
    def speaking(self) -> int:
        """Number of clients that are in a turn."""
        return sum(connection.client_session.in_turn for connection in self._connections)

    @property
    def sessions(self) -> int:
        """Number of sessions, connected and parked."""
        return 0 if self._registry is None else len(self._registry)

    @asynccontextmanager
    async def open(self, ready: Callable[[], None]) -> AsyncGenerator[None]:
        """Load the models in the background, and keep them until the context ends.

        `ready` is called when clients may connect. Requests are answered before that too. Raises
        whatever loading the models raises.
        """
        try:
            with ExitStack() as stack:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._work, stack, ready)
                    yield
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                if self._telemetry is not None:
                    await anyio.to_thread.run_sync(self._telemetry.end)
                await self._store.close()

    async def answer(self, request: HttpRequest) -> Response | None:
        """Return the response to a request, or None if it is to get a websocket."""
        return await self._routes.answer(request)

    async def _work(self, stack: ExitStack, ready: Callable[[], None]) -> None:
        """Load the models, then run the server's background tasks."""
        load = partial(stack.enter_context, self._models)
        engines = await anyio.to_thread.run_sync(load, abandon_on_cancel=True)
        for runner in engines.runners:
            if isinstance(runner, ModelThread):
                runner.waited = self.metrics.waited
        async with equipped(self._toolbox, self._servers, _note_tools) as toolbox:
            await self._run(engines, toolbox, ready)

    async def _run(self, engines: Engines, toolbox: Toolbox, ready: Callable[[], None]) -> None:
        """Let clients connect, and run the background tasks."""
        if toolbox:
            conversation = engines.llm.conversation()
            if reason := unusable(conversation, self._config, toolbox):
                _note_tools(reason)
            await engines.llm_runner.call(conversation.close)
        self._registry = SessionRegistry(
            *(engines, self._config, self.metrics, self._wake, self._store, self._offers),
            toolbox,
            self._conversations,
        )
        self._routes.samples, self._routes.unready = Samples(engines), ""
        ready()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain_at_end)
            tasks.start_soon(self._registry.expire)
            tasks.start_soon(self._registry.tell_places)
            if self._calibrates:
                turns = self._config.turns
                tasks.start_soon(calibrate_in_idle_time, engines, turns, cache_folder())

    def end(self) -> None:
        """Have `drain` run in the background, if the models are loaded."""
        self._ending.set()

    async def _drain_at_end(self) -> None:
        await self._ending.wait()
        await self.drain()

    async def drain(self, most_s: float = math.inf) -> None:
        """End each conversation after its turn. After `server.drain_s` seconds, or `most_s` if that
        is less, end all that are left.

        From now on new clients are refused, and /readyz says so.
        """
        self._routes.unready = GOING
        if self._registry is not None:
            self._registry.closing = True
        with anyio.move_on_after(min(most_s, self.limits.drain_s)):
            while self._connections:
                for connection in [
                    one for one in self._connections if not one.client_session.in_turn
                ]:
                    connection.close(AWAY, GOING)
                await self._changed.wait()
        for connection in list(self._connections):
            connection.close(AWAY, GOING)
        with anyio.move_on_after(CLOSING_S):
            while self._connections:
                await self._changed.wait()

    async def serve(self, socket: Socket, request: HttpRequest) -> None:
        """Serve the websocket of a client until either side closes it. `request` is the one that
        opened it, for which `answer` returned None."""
        verdict = self._access.judge(request.target, request.headers, request.peer)
        registry, limits = self._registry, self.limits
        assert registry is not None and isinstance(verdict, Allowed), "nobody else gets a socket"
        beside = self._access.beside(request.headers, request.peer)
        ticket = await registry.admit(verdict.key, beside=beside)
        if isinstance(ticket, Refusal):
            fields = {"reason": ticket.reason.value, "why": ticket.text}
            logger.info("a request was refused", extra=fields)
            await socket.close(TRY_AGAIN, ticket.text)
            return
        VISIT.set(next(self._numbers))
        fields = {"client": "browser" if request.browser else "program", "key": verdict.key}
        logger.info("a visit begins", extra=fields)
        begun = anyio.current_time()
        telemetry, transcribes = self._telemetry, verdict.transcribes
        report = None if telemetry is None else telemetry.reports(request.headers)
        connection = Connection(
            *(socket, registry, ticket, limits, self.metrics),
            transcribes=transcribes,
            report=report,
            record=self._record,
        )
        self._connections.add(connection)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._look_after, socket, connection)
                await connection.run()
                tasks.cancel_scope.cancel()
        finally:
            may_return = False
            try:
                with anyio.CancelScope(shield=True):
                    may_return = await registry.leave(connection)
            finally:
                self._connections.discard(connection)  # only now, since it lets `drain` return
                self._wake()
            fields = {
                "lasted_s": anyio.current_time() - begun,
                "turns": connection.turns,
                "why": connection.why,
                "may_return": may_return,
            }
            logger.info("a visit is over", extra=fields)

    async def _look_after(self, socket: Socket, connection: Connection) -> None:
        """Close the connection once its client no longer answers pings."""
        await socket.vanished()
        connection.close(INTERNAL, f"no answer to a ping in {self.limits.ping_s:g} s")

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _note_tools(text: str) -> None:
    logger.warning("tools are left out", extra={"why": text})
