"""A running conversation, for the program that holds it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

import anyio
from anyio.abc import TaskStatus

from voiceloop.api.events import TalkEvent, TalkEvents
from voiceloop.audio.switched import SwitchedMicrophone
from voiceloop.errors import VoiceloopError, first_cause
from voiceloop.session import Session
from voiceloop.types import Transcript, Word


class Talk(AsyncIterator[TalkEvent]):
    """A conversation. Iterate over it to get its events until it is over.

    Call its methods on the event loop of the conversation. After the end they raise VoiceloopError.
    """

    def __init__(
        self, session: Session, microphone: SwitchedMicrophone, events: TalkEvents
    ) -> None:
        self.over = anyio.Event()
        """Set when nothing of the conversation runs any more."""
        self._session = session
        self._microphone = microphone
        self._events = events
        self._scope = anyio.CancelScope()

    def say(self, text: str) -> int:
        """Say `text` as it is, as soon as nothing else is being said. Returns the number of its
        turn."""
        return self._begun(self._going().announce(_given(text)))

    def write(self, text: str) -> int:
        """Take `text` as a written turn of the user, and answer it aloud. Returns the number of
        the turn."""
        turn = self._begun(self._going().write(_given(text)))
        words = (Word(text, 0.0, 0.0),)
        self._events.show(Transcript(turn, 1, words, final=True))
        return turn

    def cancel(self) -> bool:
        """Stop the reply that is being thought or heard. Returns whether there was one."""
        return self._going().cancel() is not None

    def mute(self) -> None:
        """Hear silence from now on. A turn that is being heard still ends as usual."""
        self._going()
        self._microphone.muted = True

    def unmute(self) -> None:
        """Hear the microphone again."""
        self._going()
        self._microphone.muted = False

    def end(self) -> None:
        """End the conversation now, in mid-reply too."""
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
        """Return the next event; None if the conversation is over. If an error ended the
        conversation, raise it after the last event."""
        return await self._events.take()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Converse until the conversation is over. A failure is raised after the last event."""
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
