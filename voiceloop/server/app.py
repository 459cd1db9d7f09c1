"""Runs `voiceloop serve`: its service at a port, until a signal ends it."""

from __future__ import annotations

import logging
import os
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import uvicorn
from uvicorn.server import ServerState

from voiceloop import process
from voiceloop.assembly.choosing import notes, settle
from voiceloop.errors import ConfigError
from voiceloop.server.asgi import Application
from voiceloop.server.command import (
    Serve,
    for_phones,
    guarded,
    made_service,
    prepare_recordings,
)
from voiceloop.server.ops import logs
from voiceloop.server.ops.logs import PlainFormatter, worth_telling
from voiceloop.server.paced import PacedHttp
from voiceloop.server.port import LOOP, Binding, bound, check_port, no_port, tls_context
from voiceloop.server.service import Service
from voiceloop.server.session.connection import GOODBYE_S
from voiceloop.status import engine_names

logger = logging.getLogger(__name__)

POLL_S = 0.05
"""Interval at which closing connections are looked for, in seconds."""


def serve_at_port(command: Serve) -> int:
    """Run `voiceloop serve` at its own port. Return its exit status."""
    # Mistakes in the options are found before the models are loaded, which takes long.
    invitation = None
    if command.phone:
        command, invitation = for_phones(command)
    secure = None
    if command.cert and command.key:
        secure = tls_context(command.cert, command.key)
    elif command.cert or command.key:
        raise ConfigError("TLS takes a certificate and its key", "give both --cert and --key")
    binding, access, site = guarded(command)
    if invitation and invitation.issuer:
        site.add(invitation.issuer)
    prepare_recordings(command)
    check_port(binding)
    command, notice = settle(command, looks=True)
    _start_log(command)
    process.configure(command.settings.threads)
    logger.info("loading", extra={"models": engine_names(command.settings)})
    service = made_service(command, access, site, alone=True)
    app = App(service, binding, secure)
    where = f"{'https' if secure else 'http'}://{command.host}:{command.port}"
    invited = [] if invitation is None else invitation.told(secret=sys.stdout.isatty())

    def ready() -> None:
        page = invitation.page if invitation else where
        print(f"listening on {page}: open it in a browser, Ctrl-C ends", flush=True)
        for note in (*notice.all(), *notes(command.settings), *invited):
            print(note, flush=True)
        if command.record is not None:
            print(f"recording what is said and decided in {command.record}", flush=True)

    anyio.run(app.run, ready, backend_options=LOOP)
    if app.interrupted:
        raise KeyboardInterrupt
    return 0


class App:
    """One server at a port. `run` it once."""

    def __init__(
        self, service: Service, binding: Binding, secure: ssl.SSLContext | None = None
    ) -> None:
        self.interrupted = False
        """Whether a signal ended the server before the models were loaded."""
        self._service = service
        self._binding = binding
        application = Application(lambda: service)
        application.service = service  # requests are answered while the models are loaded
        self._config = uvicorn.Config(
            application,
            http=PacedHttp,  # type: ignore[arg-type]
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            ws_per_message_deflate=False,
            ssl_context_factory=(lambda config, default: secure) if secure else None,
        )

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until a signal or a cancellation ends it. Call `ready` when clients may connect.

        Raises DeviceError if the port cannot be opened, and whatever loading the models raises.
        """
        service = self._service
        async with self._listening() as stop_accepting, service.open(ready):
            try:
                with _signals() as coming:
                    process.note_signal(await anext(coming))
                    logger.info("ending", extra={"clients": service.connections})
                    self.interrupted = not service.loaded
                    stop_accepting()
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(_leave_at_next, coming)
                        await service.drain()
                        tasks.cancel_scope.cancel()
            finally:
                with anyio.CancelScope(shield=True):
                    await service.drain(0.0)

    @asynccontextmanager
    async def _listening(self) -> AsyncGenerator[Callable[[], None]]:
        """Keep the port open while the context lasts. Yield a function that stops the server from
        accepting new connections."""
        server = uvicorn.Server(self._config)
        self._config.load()
        server.lifespan = self._config.lifespan_class(self._config)
        sockets = bound(self._binding)
        try:
            await server.startup(sockets)
        except OSError as error:
            raise no_port(self._binding, error) from error

        def stop_accepting() -> None:
            for one in server.servers:
                one.close()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.main_loop)  # it keeps the header Date
            try:
                yield stop_accepting
            finally:
                tasks.cancel_scope.cancel()
                stop_accepting()
                with anyio.CancelScope(shield=True):
                    await _close(server.server_state)


async def _close(state: ServerState) -> None:
    """Close the connections that are left, and wait `GOODBYE_S` seconds at most."""
    for one in [*state.connections]:
        one.shutdown()
    with anyio.move_on_after(GOODBYE_S):
        while state.connections:  # noqa: ASYNC110 - uvicorn has no event for it
            await anyio.sleep(POLL_S)
    for one in [*state.connections]:
        one.transport.abort()


@contextmanager
def _signals() -> Iterator[AsyncIterator[int]]:
    """Yield an iterator over the signals that end the server. On Windows it waits for ever: there
    Ctrl-C raises KeyboardInterrupt."""
    if os.name == "nt":
        yield _none()
    else:
        with anyio.open_signal_receiver(*process.ENDING) as coming:
            yield coming


async def _none() -> AsyncIterator[int]:
    await anyio.sleep_forever()
    yield 0


async def _leave_at_next(coming: AsyncIterator[int]) -> None:
    """Wait for the next signal, then end the process at once, without waiting for conversations."""
    process.note_signal(await anext(coming))
    process.leave()


def _start_log(command: Serve) -> None:
    """Log to stderr: in plain words on a terminal, else as JSON for programs."""
    plain = sys.stderr.isatty()
    formatter = PlainFormatter if plain else logs.Formatter
    handler = logs.start(sys.stderr, formatter(transcripts=command.log_transcripts))
    if plain:
        handler.addFilter(worth_telling)
