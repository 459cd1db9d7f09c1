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
from voiceloop.realtime.schema import RATE
from voiceloop.realtime.server_events import ServerEvent

MOST_BYTES = 4 * 2**20
"""What may wait for a slow client: more than half a minute of audio."""

Message = str | bytes


class Outbox:
    """The queue and its writer."""

    def __init__(self, new_id: NewId, sent: Callable[[float], None]) -> None:
        """`sent` is told how many seconds of audio have gone out, each time that some have."""
        self.binary = False
        """Audio goes out as binary frames."""
        self.overrun = anyio.Event()
        """Set when more waits than may."""
        self._new_id = new_id
        self._sent = sent
        self._queue: deque[tuple[Message, OutputAudioDelta | None]] = deque()
        self._bytes = 0
        self._more = anyio.Event()
        self._ended = False

    def put(self, event: ServerEvent) -> None:
        """Send `event` after all that came before it."""
        audio = event if isinstance(event, OutputAudioDelta) else None
        if audio and self.binary:
            message: Message = audio.to_frame()
        else:
            message = event.to_json(self._new_id("event"))
        self._queue.append((message, audio))
        self._bytes += len(message)
        self._more.set()
        if self._bytes > MOST_BYTES:
            self.overrun.set()

    def flush(self, item_id: str) -> None:
        """Audio of an item that has not been sent never will be."""
        kept = [entry for entry in self._queue if not entry[1] or entry[1].item_id != item_id]
        self._bytes = sum(len(message) for message, _ in kept)
        self._queue = deque(kept)

    def end(self) -> None:
        """Nothing more comes; `run` returns when all has been sent."""
        self._ended = True
        self._more.set()

    async def run(self, send: Callable[[Message], Awaitable[None]]) -> None:
        """Send, one message after the other, for as long as the connection lasts."""
        while True:
            while self._queue:
                message, audio = self._queue.popleft()
                self._bytes -= len(message)
                await send(message)
                if audio:
                    self._sent(len(audio.delta) / 2 / RATE)
            if self._ended:
                return
            self._more = anyio.Event()
            await self._more.wait()
