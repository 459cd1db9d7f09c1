"""Lets a program take part in a running conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

import anyio
from anyio.abc import TaskStatus

from voiceloop.api.events import TalkEvent, TalkEvents
from voiceloop.audio.filters import Mute
from voiceloop.errors import VoiceloopError, first_cause
from voiceloop.session import Session
from voiceloop.types import Transcript, Word


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
