"""The queue of messages for one client, which a single task sends in order.

Callers put an event into it and go on. Only the sending task waits for the network, and the task
that reads requests waits while many answers are queued. A client that reads too slowly for its
audio is disconnected before its queue takes much memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from voiceloop.errors import ProtocolError
from voiceloop.server.ops.metrics import Metrics
from voiceloop.wire.items import RATE, NewId
from voiceloop.wire.server_events import Error, OutputAudioDelta, ServerEvent

ENOUGH_BYTES = 2**20
"""Number of bytes of queued answers beyond which no requests are read. Audio does not count."""
MOST_BYTES = 8 * 2**20
"""Maximum number of bytes queued for a slow client. There is room for more than a minute of audio,
or for `ENOUGH_BYTES` of answers and the largest answer after them."""

Message = str | bytes


class Outbox:
    """The queue of one client, with the loop that sends it."""

    def __init__(self, new_id: NewId, metrics: Metrics) -> None:
        self.binary = False
        """Whether audio is sent as binary messages."""
        self.overrun = anyio.Event()
        """Set when more than `MOST_BYTES` are queued."""
        self._new_id = new_id
        self._metrics = metrics
        self._queue: deque[tuple[Message, OutputAudioDelta | None]] = deque()
        """Messages, each with its event if it is audio."""
        self._answers = self._audio = 0
        """Queued bytes of answers and of audio."""
        self._more, self._less = anyio.Event(), anyio.Event()
        self._ended = self._discards = False

    def put(self, event: ServerEvent) -> None:
        """Queue `event`, if there is still somebody to send it to."""
        if self._discards:
            return
        audio = event if isinstance(event, OutputAudioDelta) else None
        if audio and self.binary:
            message: Message = audio.to_frame()
        else:
            message = event.to_json(self._new_id("event"))
        self._queue.append((message, audio))
        self._count(len(message), audio)
        self._more.set()
        if self._answers + self._audio > MOST_BYTES:
            self.overrun.set()

    def flush(self, item_id: str) -> int:
        """Drop all audio of an item that is still queued. Return its length in samples at 24
        kHz."""
        dropped = 0
        waiting, self._queue = self._queue, deque()
        for message, audio in waiting:
            if audio and audio.item_id == item_id:
                self._count(-len(message), audio)
                dropped += audio.length
            else:
                self._queue.append((message, audio))
        return dropped

    def refuse(self, error: ProtocolError, event_id: str | None) -> None:
        """Queue an error, and count it. `event_id` is the id of the client's event that caused the
        error; None if there is no such id."""
        self._metrics.refused_message(error.code)
        self.put(Error.of(error, event_id))

    async def room(self) -> None:
        """Wait until at most `ENOUGH_BYTES` of answers are queued."""
        while self._answers > ENOUGH_BYTES:
            self._less = anyio.Event()
            await self._less.wait()

    def discard(self) -> None:
        """Drop what is queued and what will be, since the client is gone. `room` waits no more."""
        self._discards = True
        self._queue.clear()
        self._answers = self._audio = 0
        self._less.set()

    def end(self) -> None:
        """Let `run` return when all messages have been sent."""
        self._ended = True
        self._more.set()

    async def run(self, send: Callable[[Message], Awaitable[None]]) -> None:
        """Send one message after the other. After `end`, return when all are sent. Raises what
        `send` raises."""
        while True:
            while self._queue:
                message, audio = self._queue.popleft()
                self._count(-len(message), audio)
                try:
                    await send(message)
                except anyio.get_cancelled_exc_class():  # it is sent before the goodbye
                    self._queue.appendleft((message, audio))
                    self._count(len(message), audio)
                    raise
                if audio:
                    self._metrics.sent(audio.length / RATE)
            if self._ended:
                return
            self._more = anyio.Event()
            await self._more.wait()

    def _count(self, size: int, audio: OutputAudioDelta | None) -> None:
        if audio:
            self._audio += size
        else:
            self._answers += size
        self._less.set()
