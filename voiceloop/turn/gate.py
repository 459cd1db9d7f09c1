"""The gate that holds a reply back until the user has finished, and what else may stop it."""

from __future__ import annotations

import anyio

from voiceloop.engines import FIRST, LATER, Priority


class Gate:
    """What a reply may do by now. Its owner opens and shuts it at any time."""

    def __init__(self, *, urgent: bool) -> None:
        self.urgent = urgent
        """The user has finished; until then what is done for them is a guess."""
        self._ahead_s = 0.0
        self.priority = Priority(FIRST if urgent else LATER)
        """Of its steps: replies that nobody hears yet go before those with sound to go on with."""
        self.scope = anyio.CancelScope()
        """Around all its work."""
        self._committed = anyio.Event()
        self._flowing = anyio.Event()
        self._flowing.set()
        self._hesitates_s = 0.0

    @property
    def committed(self) -> bool:
        """True once the reply may be seen and heard."""
        return self._committed.is_set()

    def hurry(self) -> None:
        """The user has finished: this is no guess any more."""
        self.urgent = True
        self._rank()

    def commit(self) -> None:
        """The user has finished, and said just what is answered."""
        self._committed.set()
        self._rank()

    def has_sound(self, seconds: float) -> None:
        """There are so many seconds of sound to go on with."""
        self._ahead_s = seconds
        self._rank()

    def _rank(self) -> None:
        if self.committed:
            self.priority.level = min(FIRST + int(self._ahead_s), LATER - 1)
        elif self.urgent:
            self.priority.level = FIRST

    def drop(self) -> None:
        """The guess was wrong: its work ends within one step of each model."""
        self.scope.cancel()

    def hesitate(self, seconds: float) -> None:
        """Think no further for so long or until `commit`: the guess is probably wrong."""
        self._hesitates_s = seconds

    def suspend(self) -> None:
        """Think and synthesise no more, but for the steps that run, until `resume`."""
        if self._flowing.is_set():
            self._flowing = anyio.Event()

    def resume(self) -> None:
        """Go on."""
        self._flowing.set()

    async def opened(self) -> None:
        """Wait for `commit`."""
        await self._committed.wait()

    async def resolved(self) -> None:
        """Wait for as long as the reply is to hesitate."""
        if self._hesitates_s:
            with anyio.move_on_after(self._hesitates_s):
                await self.opened()
            self._hesitates_s = 0.0

    async def flowing(self) -> None:
        """Wait while the reply is suspended."""
        await self._flowing.wait()
