"""Virtual time: nothing waits longer than it takes, and what happens at one moment has an order.

Scripted costs are round numbers, so that a stage ends at the very moment at which a frame arrives
is no accident here as it would be in life. It then ends after the frame and all that follows from
the frame, and one stage after the other in the order of their ranks. Any other order of tasks is
the scheduler's, which a seed shuffles. This module knows nothing of sessions.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import trio

from voiceloop.devices import AHEAD_S, NullSpeaker
from voiceloop.engines import first
from voiceloop.runner import InlineRunner

T = TypeVar("T")


@dataclass(order=True, slots=True)
class _Ticket:
    until: float
    rank: int
    number: int
    task: trio.lowlevel.Task | None = field(compare=False)
    """Who waits; none once they do not."""


class VirtualClock(trio.abc.Clock):
    """Stands still while any task can go on, and then is where the next one has to go on.

    That is what trio.testing.MockClock does with a threshold of zero. Here it takes half the rounds
    of the loop, and `wait` orders what happens at one moment.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._tickets: list[_Ticket] = []
        self._count = itertools.count()

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        # trio asks once no task can go on, and all that they wait for is the clock.
        while self._tickets and self._tickets[0].task is None:
            heapq.heappop(self._tickets)
        until = self._tickets[0].until if self._tickets else math.inf
        if deadline == until == math.inf:
            return math.inf
        self._now = max(self._now, min(deadline, until))
        if until <= self._now < deadline:
            ticket = heapq.heappop(self._tickets)
            assert ticket.task is not None
            trio.lowlevel.reschedule(ticket.task)
        return 0.0

    async def wait(self, until: float, rank: int) -> None:
        """Wait until `until`, and then until nothing but this wait and others can go on.

        Of several that wait so for the same moment the smallest rank goes first.
        """
        until = max(until, self._now)
        ticket = _Ticket(until, rank, next(self._count), trio.lowlevel.current_task())

        def abort(_: object) -> trio.lowlevel.Abort:
            ticket.task = None
            return trio.lowlevel.Abort.SUCCEEDED

        heapq.heappush(self._tickets, ticket)
        await trio.lowlevel.wait_task_rescheduled(abort)


class LateRunner(InlineRunner):
    """Gives a step's result once everything else of that moment has happened."""

    def __init__(self, clock: VirtualClock, rank: int) -> None:
        super().__init__()
        self._clock = clock
        self._rank = rank

    async def call(self, job: Callable[[], T], *, priority: Callable[[], int] = first) -> T:
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


@contextmanager
def scheduled(seed: int) -> Generator[None, None, None]:
    """Within it, trio's order of tasks that are ready at once follows from `seed` alone.

    trio shuffles them, so that no code comes to rely on their order. There is no public way to
    repeat a shuffle; this is what trio's plugin for hypothesis does.
    """
    loop = cast(Any, trio)._core._run
    before = loop._r.getstate(), loop._ALLOW_DETERMINISTIC_SCHEDULING
    loop._r.seed(seed)
    loop._ALLOW_DETERMINISTIC_SCHEDULING = True
    try:
        yield
    finally:
        loop._r.setstate(before[0])
        loop._ALLOW_DETERMINISTIC_SCHEDULING = before[1]
