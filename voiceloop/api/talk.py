"""Lets a program take part in a running conversation, and keeps its events until the program takes
them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Self

import anyio
from anyio.abc import TaskStatus

from voiceloop.audio.devices import Mute
from voiceloop.errors import VoiceloopError, first_cause
from voiceloop.session import Session
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
    Word,
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


class Talk(AsyncIterator[TalkEvent]):
    """A conversation. Iterate over it to get its events until it is over.

    Call its methods on the event loop of the conversation. After the end of the conversation `say`,
    `write`, `cancel`, `mute` and `unmute` raise VoiceloopError.
    """

    def __init__(self, session: Session, mute: Mute, events: TalkEvents) -> None:
        self.over = anyio.Event()
        """An event that is set once the conversation is over and its work has ended."""
        self._session = session
        self._mute = mute
        self._events = events
        self._scope = anyio.CancelScope()

    def say(self, text: str) -> int:
        """Say `text` as it is, as soon as nothing else is being said.

        Returns the number of its turn. Raises VoiceloopError for an empty text.
        """
        return self._begun(self._going().announce(_given(text)))

    def write(self, text: str) -> int:
        """Take `text` as a written turn of the user, and answer it aloud.

        Returns the number of the turn. Raises VoiceloopError for an empty text.
        """
        turn = self._begun(self._going().write(_given(text)))
        words = (Word(text, 0.0, 0.0),)
        self._events.show(Transcript(turn, 1, words, final=True))
        return turn

    def cancel(self) -> bool:
        """Stop the present reply, even before it sounds. Returns whether there was such a reply."""
        return self._going().cancel() is not None

    def mute(self) -> None:
        """Hear silence instead of the microphone from now on.

        A turn that the user has begun ends as usual.
        """
        self._going()
        self._mute.muted = True

    def unmute(self) -> None:
        """Hear the microphone again after `mute`."""
        self._going()
        self._mute.muted = False

    def end(self) -> None:
        """End the conversation at once, even during a reply."""
        self._events.close()
        self._scope.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TalkEvent:
        event = await self.take()
        if event is None:
            raise StopAsyncIteration
        return event

    async def take(self) -> TalkEvent | None:
        """Wait for the next event and return it; None after the last event of the conversation.

        If an error ended the conversation, it is raised once instead of the first None.
        """
        return await self._events.take()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run the conversation until it is over.

        If it fails, `take` raises the error after the last event.
        """
        failure: Exception | None = None
        try:
            with self._scope:
                await self._session.run(task_status=task_status)
        except Exception as raised:
            failure = first_cause(raised)
        finally:
            self._events.close(failure)
            self.over.set()

    def _going(self) -> Session:
        if self.over.is_set() or self._scope.cancel_called:
            raise VoiceloopError("this conversation is over", "begin another one with Loop.talk")
        return self._session

    def _begun(self, turn: int | None) -> int:
        assert turn is not None, "the session runs, and its replies are wanted"
        return turn


def _given(text: str) -> str:
    if not text.strip():
        raise VoiceloopError("the text is empty", "give it words")
    return text
