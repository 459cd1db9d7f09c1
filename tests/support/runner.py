"""The Runner for a virtual clock, which would jump ahead while a thread computes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Generic, TypeVar, cast

import anyio
import anyio.lowlevel

from voiceloop.engines import URGENT, Priority, Steps
from voiceloop.runner import DONE, Quiet, streamed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """The result of a scripted step, and the step's cost in seconds."""

    value: T
    cost: float


class InlineRunner:
    """A Runner on the event loop, which delivers a `Timed` result after its cost has passed.

    Like a `ModelThread` it executes one step at a time, the smallest priority first.
    """

    def __init__(self) -> None:
        self._quiet = Quiet(anyio.current_time)
        self._waiting: list[tuple[Priority, int, anyio.Event]] = []
        self._count = count()
        self._busy = False

    async def call(self, job: Callable[[], T], *, priority: Priority = URGENT) -> T:
        """Run `job` on the event loop, when no other step runs and none more urgent waits."""
        await anyio.lowlevel.checkpoint()  # as on a thread, a cancelled call does not begin
        with self._quiet.until_done(priority):
            return await self._step(job, priority)

    def quiet_s(self) -> float:
        """Return the seconds since the end of the last work with a level below `IDLE`; 0 during
        such work."""
        return self._quiet.seconds()

    async def _step(self, job: Callable[[], T], priority: Priority) -> T:
        async with self._turn(priority):
            result = job()
            if isinstance(result, Timed):
                timed = cast("Timed[T]", result)
                await anyio.sleep(timed.cost)
                return timed.value
            return result

    def stream(self, steps: Steps[T], *, priority: Priority = URGENT) -> AsyncGenerator[T, None]:
        """Advance `steps` when the consumer requests a result, one step per call."""

        async def step() -> T | None:
            return await self.call(partial(next, steps, DONE), priority=priority)

        return streamed(step, self.call, steps)

    @asynccontextmanager
    async def _turn(self, priority: Priority) -> AsyncGenerator[None, None]:
        if self._busy:
            ticket = priority, next(self._count), anyio.Event()
            self._waiting.append(ticket)
            try:
                await ticket[2].wait()
            except BaseException:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                else:  # the call got the runner just as it was cancelled
                    self._pass_on()
                raise
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            ticket = min(self._waiting, key=lambda one: (one[0].level, one[1]))
            self._waiting.remove(ticket)
            ticket[2].set()
        else:
            self._busy = False
