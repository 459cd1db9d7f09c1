"""Virtual time: waiting takes no real time, and events of one moment have a fixed order.

The duration of a scripted stage is a round number, so a stage often ends at the moment at which a
frame arrives. Then the frame comes first, with everything that follows from it. After that the
stages end, the one with the smallest rank first. All other tasks that are ready at one moment run
in an order that a seed shuffles, so that no code can rely on it. This module knows nothing of
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
import anyio.to_thread

from tests.support.runner import InlineRunner
from voiceloop.audio.devices import AHEAD_S, NullSpeaker
from voiceloop.engines import URGENT, Priority

T = TypeVar("T")
Args = TypeVarTuple("Args")


@dataclass(order=True, slots=True)
class _ReadyTicket:
    until: float
    rank: int
    number: int
    called: asyncio.Future[None] = field(compare=False)
    """Done once the waiting task may go on, or no longer waits."""


class VirtualClock:
    """A clock that stands still while any task can go on or waits for `anyio.to_thread`, and then
    jumps to the next event."""

    def __init__(self, seed: int = 0) -> None:
        self.order = Random(seed)
        """Random generator that shuffles the tasks that are ready at the same moment."""
        self._now = 0.0
        self._tickets: list[_ReadyTicket] = []
        self._count = itertools.count()

    def run(self, main: Callable[[*Args], Awaitable[T]], *args: *Args) -> T:
        """Run `main(*args)` in an event loop with this clock's time."""
        return anyio.run(main, *args, backend_options={"loop_factory": self.loop})

    def loop(self) -> asyncio.AbstractEventLoop:
        """Return an event loop with this clock's time."""
        return _VirtualLoop(self)

    def current_time(self) -> float:
        """Return the seconds since the clock began to run."""
        return self._now

    async def wait(self, until: float, rank: int) -> None:
        """Wait until the time `until`, and then until all other work of that moment is done.

        Of several such waits for the same moment, the one with the smallest rank ends first.
        """
        called = asyncio.get_running_loop().create_future()
        ticket = _ReadyTicket(max(until, self._now), rank, next(self._count), called)
        heapq.heappush(self._tickets, ticket)
        await called

    def advance(self, deadline: float) -> bool:
        """Jump to the next event: the end of a `wait`, or the first timer of the event loop, which
        is due at `deadline`. The loop calls this when no task can go on. Return False if there is
        no event. An infinite `deadline` means that there is no timer."""
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
    """An event loop of asyncio with virtual time and a shuffled order of tasks.

    asyncio has no public list of the handles that are ready or wait for a timer. So this class uses
    private names, which have been the same since asyncio began.
    """

    _ready: Any
    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        super().__init__(_Selector(self))
        self._clock_resolution = math.ulp(0.0)

    def time(self) -> float:
        """Return the clock's time."""
        return self._clock.current_time()

    def next_timeout(self, timeout: float | None) -> float | None:
        """Return how long to wait for sockets and other threads before ready handles run, in
        seconds. None means without a limit."""
        if self._ready:
            self._shuffle()
        elif timeout != 0:
            if anyio.to_thread.current_default_thread_limiter().borrowed_tokens:
                return None  # time stands still while a task waits for work in another thread
            deadline = self._scheduled[0].when() if self._scheduled else math.inf
            if not self._clock.advance(deadline):
                return None
            # asyncio runs the timers that are due before time() + resolution: only those due now.
            self._clock_resolution = math.ulp(self.time())
        return 0

    def _shuffle(self) -> None:
        ready = list(self._ready)  # other threads may append to it meanwhile
        places = [at for at, handle in enumerate(ready) if _is_task(handle)]
        handles = [ready[at] for at in places]
        self._clock.order.shuffle(handles)
        for at, handle in zip(places, handles, strict=True):
            self._ready[at] = handle


def _is_task(handle: Any) -> bool:
    """Return whether `handle` goes on with a task. Other callbacks keep their order."""
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)


class _Selector(selectors.DefaultSelector):
    """A selector that waits for sockets and other threads only if no task waits for the clock."""

    def __init__(self, loop: _VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        """Return the files that are ready. The loop calls this before it runs its ready handles."""
        return super().select(self._loop.next_timeout(timeout))


class LateRunner(InlineRunner):
    """An inline runner that returns a result only after all other work of the same moment."""

    def __init__(self, clock: VirtualClock, rank: int) -> None:
        super().__init__()
        self._clock = clock
        self._rank = rank

    async def call(self, job: Callable[[], T], *, priority: Priority = URGENT) -> T:
        """Run `job` as `InlineRunner.call` does. If that took time, return the result only after
        all other work of the same moment."""
        begun = self._clock.current_time()
        result = await super().call(job, priority=priority)
        if (now := self._clock.current_time()) > begun:
            await self._clock.wait(now, self._rank)
        return result


class LateSpeaker(NullSpeaker):
    """A speaker that reports room only after all other work of the same moment."""

    def __init__(self, rate: int, clock: VirtualClock, rank: int) -> None:
        super().__init__(rate)
        self._clock = clock
        self._rank = rank

    async def room(self) -> None:
        """Wait until at most `AHEAD_S` seconds of audio are written but not yet played."""
        await self._clock.wait(self.due() - AHEAD_S, self._rank)
