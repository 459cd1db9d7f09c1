"""What waits to be sent to one client, in order, by the one task that sends.

Whoever has something to say puts it here and goes on; nobody but the writer waits for the network,
and whoever reads what the client asks: it is asked nothing more while many answers wait. A client
that reads too slowly for its audio is given up before it costs memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from voiceloop.errors import ProtocolError
from voiceloop.server.metrics import Metrics
from voiceloop.wire.ids import NewId
from voiceloop.wire.response_events import OutputAudioDelta
from voiceloop.wire.server_events import ServerEvent
from voiceloop.wire.session_events import Error
from voiceloop.wire.sound import RATE

ENOUGH_BYTES = 2**20
"""Answers that wait when no more questions are taken; audio is paced by itself and not counted."""
MOST_BYTES = 8 * 2**20
"""What may wait for a slow client: more than a minute of audio, or the answer to the largest
question with as much before it as may be."""

Message = str | bytes
Arrived = Callable[[], None] | None


class Outbox:
    """The queue and its writer."""

    def __init__(self, new_id: NewId, metrics: Metrics) -> None:
        self.binary = False
        """Audio goes out as binary frames."""
        self.overrun = anyio.Event()
        """Set when more waits than may."""
        self._new_id = new_id
        self._metrics = metrics
        self._queue: deque[tuple[Message, OutputAudioDelta | None, Arrived]] = deque()
        self._answers = self._audio = 0
        """Bytes of either that wait."""
        self._more, self._less = anyio.Event(), anyio.Event()
        self._ended = False

    def put(self, event: ServerEvent, arrived: Arrived = None) -> None:
        """Send `event` after all that came before it; see `Transport.send` for `arrived`."""
        audio = event if isinstance(event, OutputAudioDelta) else None
        if audio and self.binary:
            message: Message = audio.to_frame()
        else:
            message = event.to_json(self._new_id("event"))
        self._queue.append((message, audio, arrived))
        self._count(len(message), audio)
        self._more.set()
        if self._answers + self._audio > MOST_BYTES:
            self.overrun.set()

    def flush(self, item_id: str) -> int:
        """Audio of an item that has not been sent never will be.

        Returns how many samples at 24 kHz that is.
        """
        dropped = 0
        waiting, self._queue = self._queue, deque()
        for message, audio, arrived in waiting:
            if audio and audio.item_id == item_id:
                self._count(-len(message), audio)
                dropped += audio.length
            else:
                self._queue.append((message, audio, arrived))
        return dropped

    def refuse(self, error: ProtocolError, event_id: str | None) -> None:
        """See `Out.refuse`; it is counted too."""
        self._metrics.refused_message(error.code)
        self.put(Error.of(error, event_id))

    async def room(self) -> None:
        """Wait until the client has read most of what it was answered."""
        while self._answers > ENOUGH_BYTES:
            self._less = anyio.Event()
            await self._less.wait()

    def end(self) -> None:
        """Nothing more comes; `run` returns when all has been sent."""
        self._ended = True
        self._more.set()

    async def run(self, send: Callable[[Message, Arrived], Awaitable[None]]) -> None:
        """Send, one message after the other, for as long as the connection lasts."""
        while True:
            while self._queue:
                message, audio, arrived = self._queue.popleft()
                self._count(-len(message), audio)
                await send(message, arrived)
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
