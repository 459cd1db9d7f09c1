"""What waits to be sent to one client, in order, by the one task that sends.

Whoever has something to say puts it here and goes on; nobody but the writer waits for the network.
A client that reads too slowly is given up before it costs memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from voiceloop.realtime.ids import NewId
from voiceloop.realtime.response_events import OutputAudioDelta
from voiceloop.realtime.server_events import ServerEvent

MOST_BYTES = 4 * 2**20
"""What may wait for a slow client: more than half a minute of audio."""

Message = str | bytes


class Outbox:
    """The queue and its writer."""

    def __init__(self, new_id: NewId) -> None:
        self.binary = False
        """Audio goes out as binary frames."""
        self.overrun = anyio.Event()
        """Set when more waits than may."""
        self._new_id = new_id
        self._queue: deque[tuple[str | None, Message]] = deque()
        self._bytes = 0
        self._more = anyio.Event()
        self._ended = False

    def put(self, event: ServerEvent) -> None:
        """Send `event` after all that came before it."""
        item_id = None
        message: Message
        if isinstance(event, OutputAudioDelta):
            item_id = event.item_id
            message = event.to_frame() if self.binary else event.to_json(self._new_id("event"))
        else:
            message = event.to_json(self._new_id("event"))
        self._queue.append((item_id, message))
        self._bytes += len(message)
        self._more.set()
        if self._bytes > MOST_BYTES:
            self.overrun.set()

    def flush(self, item_id: str) -> None:
        """Audio of an item that has not been sent never will be."""
        kept = deque(entry for entry in self._queue if entry[0] != item_id)
        self._bytes = sum(len(message) for _, message in kept)
        self._queue = kept

    def end(self) -> None:
        """Nothing more comes; `run` returns when all has been sent."""
        self._ended = True
        self._more.set()

    async def run(self, send: Callable[[Message], Awaitable[None]]) -> None:
        """Send, one message after the other, for as long as the connection lasts."""
        while True:
            while self._queue:
                _, message = self._queue.popleft()
                self._bytes -= len(message)
                await send(message)
            if self._ended:
                return
            self._more = anyio.Event()
            await self._more.wait()
