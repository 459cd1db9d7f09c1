"""Virtual time: nothing waits longer than it takes, and what happens at one moment has an order.

Scripted costs are round numbers, so that a stage ends at the very moment at which a frame arrives
is no accident here as it would be in life. It then ends after the frame and all that follows from
the frame, and one stage after the other in the order of their ranks. Any other order of tasks is
shuffled, as a seed says, so that no code comes to rely on it. This module knows nothing of
sessions.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import selectors
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar, TypeVarTuple

import anyio

from voiceloop.audio.devices import AHEAD_S, NullSpeaker
from voiceloop.engines import URGENT, Priority
from voiceloop.runner import InlineRunner

T = TypeVar("T")
Args = TypeVarTuple("Args")


@dataclass(order=True, slots=True)
class _ReadyTicket:
    until: float
    rank: int
    number: int
    called: asyncio.Future[None] = field(compare=False)
    """Done once the one who waits may go on, or waits no longer."""


class VirtualClock:
    """Stands still while any task can go on, and then is where the next one has to go on."""

    def __init__(self, seed: int = 0) -> None:
        self.order = Random(seed)
        """Draws which of the tasks that can go on at the same time goes first."""
        self._now = 0.0
        self._tickets: list[_ReadyTicket] = []
        self._count = itertools.count()

    def run(self, main: Callable[[*Args], Awaitable[T]], *args: *Args) -> T:
        """Run `main(*args)` in an event loop whose time is this clock's."""
        return anyio.run(main, *args, backend_options={"loop_factory": self.loop})

    def loop(self) -> asyncio.AbstractEventLoop:
        """An event loop whose time is this clock's."""
        return _VirtualLoop(self)

    def current_time(self) -> float:
        """Seconds since the clock began to run."""
        return self._now

    async def wait(self, until: float, rank: int) -> None:
        """Wait until `until`, and then until nothing but this wait and others can go on.

        Of several that wait so for the same moment the smallest rank goes first.
        """
        called = asyncio.get_running_loop().create_future()
        ticket = _ReadyTicket(max(until, self._now), rank, next(self._count), called)
        heapq.heappush(self._tickets, ticket)
        await called

    def advance(self, deadline: float) -> bool:
        """Go to the moment of the next ticket or timer, of which `deadline` is the first.

        For the loop, once nothing can go on. False where nobody waits for the clock.
        """
        while self._tickets and self._tickets[0].called.done():
            heapq.heappop(self._tickets)
        until = self._tickets[0].until if self._tickets else math.inf
        if deadline == until == math.inf:
            return False
        self._now = max(self._now, min(deadline, until))
        if until <= self._now < deadline:
            heapq.heappop(self._tickets).called.set_result(None)
        return True


class _VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop, but for its time and the order of tasks.

    There is no public way to tell what waits for a timer, or what is ready; hence some private
    names, which have been the same since asyncio began.
    """

    _ready: Any
    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        super().__init__(_Selector(self))
        self._clock_resolution = math.ulp(0.0)

    def time(self) -> float:
        """The clock's."""
        return self._clock.current_time()

    def next_timeout(self, timeout: float | None) -> float | None:
        """How long to wait for sockets and other threads, before what is ready is run."""
        if self._ready:
            self._shuffle()
        elif timeout != 0:
            deadline = self._scheduled[0].when() if self._scheduled else math.inf
            if not self._clock.advance(deadline):
                return None
            # Timers of this moment are due, and none of a later one.
            self._clock_resolution = math.ulp(self.time())
        return 0

    def _shuffle(self) -> None:
        places = [at for at, handle in enumerate(self._ready) if _is_task(handle)]
        handles = [self._ready[at] for at in places]
        self._clock.order.shuffle(handles)
        for at, handle in zip(places, handles, strict=True):
            self._ready[at] = handle


def _is_task(handle: Any) -> bool:
    """Whether a task goes on when `handle` is run; other calls have an order of their own."""
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)


class _Selector(selectors.DefaultSelector):
    """Waits for sockets and other threads only while nothing waits for the clock."""

    def __init__(self, loop: _VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        """What is ready; the loop asks before it runs what can go on."""
        return super().select(self._loop.next_timeout(timeout))


class LateRunner(InlineRunner):
    """Gives a step's result once everything else of that moment has happened."""

    def __init__(self, clock: VirtualClock, rank: int) -> None:
        super().__init__()
        self._clock = clock
        self._rank = rank

    async def call(self, job: Callable[[], T], *, priority: Priority = URGENT) -> T:
        """Run `job`; see `InlineRunner`."""
        begun = self._clock.current_time()
        result = await super().call(job, priority=priority)
        if (now := self._clock.current_time()) > begun:
            await self._clock.wait(now, self._rank)
        return result


class LateSpeaker(NullSpeaker):
    """Has room once everything else of that moment has happened."""

    def __init__(self, rate: int, clock: VirtualClock, rank: int) -> None:
        super().__init__(rate)
        self._clock = clock
        self._rank = rank

    async def room(self) -> None:
        """Wait until less than `AHEAD_S` is written but not yet played."""
        await self._clock.wait(self.due() - AHEAD_S, self._rank)
