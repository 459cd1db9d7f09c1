"""Runs the service of `voiceloop serve` at a port until a signal ends it."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import anyio

from voiceloop import signals
from voiceloop.config import ServerConfig
from voiceloop.server.port import Binding
from voiceloop.server.service import Service
from voiceloop.server.websocket import listening

logger = logging.getLogger(__name__)


class App:
    """One server at a port. `run` it once."""

    def __init__(
        self,
        service: Service,
        limits: ServerConfig,
        binding: Binding,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.interrupted = False
        """Whether a signal ended the server before the models were loaded."""
        self._service = service
        self._limits = limits
        self._binding = binding
        self._tls = tls

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until a signal or a cancellation ends it. Call `ready` when clients may connect.

        Raises DeviceError if the port cannot be opened, and whatever loading the models raises.
        """
        service = self._service
        opened = listening(self._binding, self._tls, self._limits, service.answer, service.serve)
        async with opened as stop_accepting, service.open(ready):
            with _signals() as coming:
                signals.note(await anext(coming))
                logger.info("ending", extra={"clients": service.connections})
                self.interrupted = not service.loaded
                stop_accepting()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_leave_at_next, coming)
                    await service.drain()
                    tasks.cancel_scope.cancel()


@contextmanager
def _signals() -> Iterator[AsyncIterator[int]]:
    """Yield an iterator over the signals that end the server. On Windows it waits for ever: there
    Ctrl-C raises KeyboardInterrupt."""
    if os.name == "nt":
        yield _none()
    else:
        with anyio.open_signal_receiver(*signals.ENDING) as coming:
            yield coming


async def _none() -> AsyncIterator[int]:
    await anyio.sleep_forever()
    yield 0


async def _leave_at_next(coming: AsyncIterator[int]) -> None:
    """Wait for the next signal, then end the process at once, without waiting for conversations."""
    signals.note(await anext(coming))
    signals.leave()
