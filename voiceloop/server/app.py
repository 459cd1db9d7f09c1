"""The server: one port for the page and the websocket, and the models that all sessions share.

Each connection is a task of its own with its own cancel scopes. They share the models with their
threads, the session registry, and the metrics, which this module holds.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

import anyio
import anyio.to_thread

from voiceloop import signals
from voiceloop.calibration.idle import calibrate_in_idle_time
from voiceloop.calibration.keeping import cache_folder
from voiceloop.config import Config
from voiceloop.engines import Engines
from voiceloop.runner import ModelThread
from voiceloop.server.auth import Access, Allowed
from voiceloop.server.connection import AWAY, INTERNAL, Connection
from voiceloop.server.http import Site
from voiceloop.server.limits import Refusal
from voiceloop.server.lobby import SessionRegistry
from voiceloop.server.logs import VISIT
from voiceloop.server.metrics import Metrics
from voiceloop.server.offers import Offers
from voiceloop.server.port import Binding
from voiceloop.server.routes import HttpRequest, Routes, Samples
from voiceloop.server.websocket import WebSocket, listening

logger = logging.getLogger(__name__)

DRAIN_S = 10.0
"""Seconds after a signal for replies to end, and again for connections to close."""
TRY_AGAIN = 1013
"""Close code of a websocket for whose client there is no place."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The port of a server, its access rules, its page, and its certificate if it has one."""

    binding: Binding
    access: Access
    site: Site
    tls: ssl.SSLContext | None = None


class App:
    """One server. `run` it once."""

    def __init__(
        self,
        models: AbstractContextManager[Engines],
        config: Config,
        place: ServeOptions,
        offers: Offers | None = None,
    ) -> None:
        """`models` is entered on a worker thread while the page is served, and left at the end."""
        self.metrics = Metrics()
        self.interrupted = False
        """Whether a signal ended the server before the models were loaded."""
        self._models = models
        self._config = config
        self._place = place
        self._offers = offers
        self._routes = Routes(
            place.access,
            place.site,
            self.metrics,
            full=lambda: self._registry is not None and self._registry.full,
        )
        self._registry: SessionRegistry | None = None
        """None until the models are loaded; until then no client gets a session."""
        self._connections: set[Connection] = set()
        self._numbers = count(1)
        """Numbers of client sessions, for the log."""
        self._changed = anyio.Event()
        """Set, and then replaced, when a turn or a connection ends."""

    @property
    def sessions(self) -> int:
        """Number of sessions, connected and parked."""
        return 0 if self._registry is None else len(self._registry)

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until a signal or a cancellation ends it. Call `ready` when clients may connect.

        Raises DeviceError if the port cannot be opened, and whatever loading the models raises.
        """
        place = self._place
        limits = self._config.server
        opened = listening(place.binding, place.tls, limits, self._routes.answer, self._connect)
        with ExitStack() as stack:
            async with opened as stop_accepting, anyio.create_task_group() as tasks:
                tasks.start_soon(self._work, stack, ready)
                with _signals() as coming:
                    signals.note(await anext(coming))
                    tasks.start_soon(_leave_at_next, coming)
                    logger.info("ending", extra={"clients": len(self._connections)})
                    self.interrupted = self._registry is None
                    stop_accepting()
                    await self._drain()
                    tasks.cancel_scope.cancel()

    async def _work(self, stack: ExitStack, ready: Callable[[], None]) -> None:
        """Load the models, then run the server's background tasks."""
        load = partial(stack.enter_context, self._models)
        engines = await anyio.to_thread.run_sync(load, abandon_on_cancel=True)
        for runner in engines.runners:
            if isinstance(runner, ModelThread):
                runner.waited = self.metrics.waited
        self._registry = SessionRegistry(
            engines, self._config, self.metrics, self._wake, self._offers
        )
        self._routes.samples, self._routes.unready = Samples(engines), ""
        ready()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._registry.expire)
            tasks.start_soon(calibrate_in_idle_time, engines, cache_folder())

    async def _drain(self) -> None:
        """Wait for replies to end, then close all connections."""
        self._routes.unready = "the server is going down"
        if self._registry is not None:
            self._registry.closing = True
        with anyio.move_on_after(DRAIN_S):
            while any(one.visit.responding for one in self._connections):
                await self._changed.wait()
        for connection in list(self._connections):
            connection.close(AWAY, "the server is going down")
        with anyio.move_on_after(DRAIN_S):
            while self._connections:
                await self._changed.wait()

    async def _connect(self, socket: WebSocket, request: HttpRequest) -> None:
        """Serve a client that is allowed to connect."""
        access = self._place.access
        verdict = access.judge(request.target, request.headers)
        registry, limits = self._registry, self._config.server
        assert registry is not None and isinstance(verdict, Allowed), "nobody else gets a socket"
        beside = access.beside(request.headers, request.peer)
        ticket = registry.admit(verdict.key, beside=beside)
        if isinstance(ticket, Refusal):
            fields = {"reason": ticket.reason.value, "why": ticket.text}
            logger.info("a request was refused", extra=fields)
            await socket.close(TRY_AGAIN, ticket.text)
            return
        VISIT.set(next(self._numbers))
        fields = {"client": "browser" if request.browser else "program", "key": verdict.key}
        logger.info("a visit begins", extra=fields)
        begun = anyio.current_time()
        connection = Connection(
            socket, registry, ticket, limits, self.metrics, transcribes=verdict.transcribes
        )
        self._connections.add(connection)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._look_after, socket, connection)
                await connection.run()
                tasks.cancel_scope.cancel()
        finally:
            self._connections.discard(connection)
            self._wake()
            with anyio.CancelScope(shield=True):
                may_return = await registry.leave(connection)
            fields = {
                "lasted_s": anyio.current_time() - begun,
                "turns": connection.turns,
                "why": connection.why,
                "may_return": may_return,
            }
            logger.info("a visit is over", extra=fields)

    async def _look_after(self, socket: WebSocket, connection: Connection) -> None:
        """Close the connection once its client no longer answers pings."""
        ping_s = self._config.server.ping_s
        await socket.vanished(ping_s)
        connection.close(INTERNAL, f"no answer to a ping in {ping_s:g} s")

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@contextmanager
def _signals() -> Iterator[AsyncIterator[int]]:
    """Give the signals that end the server, as they come; on Windows Ctrl-C raises instead."""
    if os.name == "nt":
        yield _none()
    else:
        with anyio.open_signal_receiver(*signals.ENDING) as coming:
            yield coming


async def _none() -> AsyncIterator[int]:
    await anyio.sleep_forever()
    yield 0


async def _leave_at_next(coming: AsyncIterator[int]) -> None:
    """End the process at the next signal. Its sender does not want to wait; nothing is lost."""
    signals.note(await anext(coming))
    signals.leave()
