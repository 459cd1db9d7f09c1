"""Watch whether a server can still be reached. Report once when it has gone, and once when it is
back.

Reports go to the log, or to the view of a running conversation. This module sends nothing.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
from anyio.from_thread import BlockingPortal

from voiceloop.llm.remote.troubles import Trouble

logger = logging.getLogger(__name__)

EVERY_S = 2.0
"""Seconds between two checks of a server that has gone."""
LOADING = 503
"""HTTP status of a server that runs but cannot reply yet."""


async def watch(host: str, ask: Callable[[], Awaitable[None]]) -> None:
    """Wait until the server at `host` is there. If it is not there at first, report that, and later
    its return.

    `ask` sends a request to the server, and raises Trouble if the request fails. A server that
    refuses the request is there, unless the status is `LOADING`.
    """
    gone = False
    while (why := await _absent(ask)) is not None:
        if not gone:
            logger.warning(
                "the language model has gone, and the conversation goes on when it is back: %s", why
            )
            gone = True
        await anyio.sleep(EVERY_S)
    if gone:
        logger.warning("the language model is back at %s", host)


async def _absent(ask: Callable[[], Awaitable[None]]) -> str | None:
    """Return why the server is not there; None if it is."""
    try:
        await ask()
    except Trouble as trouble:
        return trouble.message if trouble.status in (None, LOADING) else None
    return None


@asynccontextmanager
async def told_to(tell: Callable[[str], None]) -> AsyncGenerator[None]:
    """Pass all reports to `tell` while the context lasts, and not to the log. `tell` is called on
    this event loop."""
    async with BlockingPortal() as portal:
        handler = _ComplaintHandler(partial(portal.start_task_soon, tell))
        logger.addHandler(handler)
        logger.propagate = False
        try:
            yield
        finally:
            logger.propagate = True
            logger.removeHandler(handler)


class _ComplaintHandler(logging.Handler):
    def __init__(self, tell: Callable[[str], object]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the message to `tell`. This is called on the thread of the requests."""
        with suppress(RuntimeError):  # the conversation has just ended
            self._tell(record.getMessage())
