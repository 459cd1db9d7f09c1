"""The gate that holds a reply back until the user has finished. It can also pause or end the
reply's work."""

from __future__ import annotations

import anyio

from voiceloop.engines import FIRST, LATER, Priority


class Gate:
    """The latch that says what a reply may do. Its owner may change it at any time."""

    def __init__(self, *, urgent: bool) -> None:
        self.urgent = urgent
        """Whether the user has finished. Until then the reply's work is a guess."""
        self._ahead_s = 0.0
        self.priority = Priority(FIRST if urgent else LATER)
        """Priority of the reply's steps. After the endpoint, a reply without audio goes before
        replies that have a second or more of audio to play."""
        self.scope = anyio.CancelScope()
        """Cancel scope around all work of the reply."""
        self._committed = anyio.Event()
        self._flowing = anyio.Event()
        self._flowing.set()
        self._hesitates_s = 0.0

    @property
    def committed(self) -> bool:
        """Whether the reply may be seen and heard."""
        return self._committed.is_set()

    def hurry(self) -> None:
        """Note that the user has finished, so that the reply's work is no guess any more."""
        self.urgent = True
        self._rank()

    def commit(self) -> None:
        """Let the reply out, because the user has finished and has said exactly the words that it
        answers."""
        self._committed.set()
        self._rank()

    def has_audio(self, seconds: float) -> None:
        """Note how many seconds of audio wait to be played. Each whole second lowers the priority
        of a committed reply."""
        self._ahead_s = seconds
        self._rank()

    def _rank(self) -> None:
        if self.committed:
            self.priority.level = min(FIRST + int(self._ahead_s), LATER - 1)
        elif self.urgent:
            self.priority.level = FIRST

    def drop(self) -> None:
        """Cancel the reply, since the guess was wrong. Its work ends within one step of each
        model."""
        self.scope.cancel()

    def hesitate(self, seconds: float) -> None:
        """Pause thinking for `seconds` or until `commit`, since the guess is probably wrong."""
        self._hesitates_s = seconds

    def suspend(self) -> None:
        """Pause thinking and synthesis until `resume`. Steps that run are finished."""
        if self._flowing.is_set():
            self._flowing = anyio.Event()

    def resume(self) -> None:
        """Go on after `suspend`."""
        self._flowing.set()

    async def opened(self) -> None:
        """Wait for `commit`."""
        await self._committed.wait()

    async def resolved(self) -> None:
        """Wait for the time that `hesitate` has requested, or until `commit`."""
        if self._hesitates_s:
            with anyio.move_on_after(self._hesitates_s):
                await self.opened()
            self._hesitates_s = 0.0

    async def flowing(self) -> None:
        """Wait while the reply is suspended."""
        await self._flowing.wait()
