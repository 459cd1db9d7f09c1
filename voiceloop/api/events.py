"""Keeps the events of a conversation until the program takes them."""

from __future__ import annotations

from collections import deque

import anyio

from voiceloop.types import (
    Clause,
    Event,
    FloorChange,
    Notice,
    TokenBurst,
    ToolCall,
    Transcript,
    TurnHeard,
    TurnTrace,
)
from voiceloop.view.transcript import Exchanges, TurnOver

TalkEvent = (
    Transcript | TokenBurst | ToolCall | Clause | Notice | TurnHeard | FloorChange | TurnOver
)
"""An event that a program gets from a conversation. Each turn ends with a `TurnOver`."""

MOST = 10_000
"""Maximum number of events in the queue. A turn has some dozens of events."""


class TalkEvents:
    """A queue of the events that the program has not taken yet. When it is full, the oldest is
    dropped."""

    def __init__(self) -> None:
        self._waiting = deque[TalkEvent](maxlen=MOST)
        self._dropped = 0
        """Number of events that were dropped since the last one was taken."""
        self._exchanges = Exchanges()
        self._changed = anyio.Event()
        self._over = False
        self._error: Exception | None = None

    def show(self, event: Event) -> None:
        """Add an event of the session to the queue. A `TurnTrace` becomes a `TurnOver`."""
        match event:
            case TurnTrace():
                self._add(self._exchanges.over(event))
                return
            case Transcript() | TokenBurst() | Clause():
                self._exchanges.follow(event)
            case _:
                pass
        self._add(event)

    def note(self, text: str) -> None:
        """Add a notice with this text for the user to the queue."""
        self._add(Notice(text))

    def close(self, error: Exception | None = None) -> None:
        """Ignore later events. After the last event in the queue, `take` raises `error` once."""
        if not self._over:
            self._over, self._error = True, error
            self._changed.set()

    def failure(self) -> Exception | None:
        """Return the error that ended the conversation; None if there was none.

        Each later call returns None too, so the error is raised only once.
        """
        error, self._error = self._error, None
        return error

    async def take(self) -> TalkEvent | None:
        """Wait for the next event and return it; None after the last event of the conversation.

        If an error ended the conversation, it is raised once instead of the first None. If events
        were dropped, a notice with their number comes first.
        """
        while not self._waiting and not self._over:
            await self._changed.wait()
        if self._dropped:
            lost, self._dropped = self._dropped, 0
            return Notice(f"{lost} event(s) were dropped, because nobody took them in time")
        if self._waiting:
            return self._waiting.popleft()
        if error := self.failure():
            raise error
        return None

    def _add(self, event: TalkEvent) -> None:
        if self._over:
            return
        self._dropped += len(self._waiting) == MOST
        self._waiting.append(event)
        self._changed.set()
        self._changed = anyio.Event()
