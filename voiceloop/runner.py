"""Runners: what executes the steps of engines, one step of one model at a time.

`ModelThread` is the production Runner: a thread per loaded model, so that a long step never stops
the event loop, and steps of one model never run side by side. `InlineRunner` executes the same
steps on the event loop and sleeps for what a scripted engine states that they cost; a waiting
thread would count as idleness on trio's MockClock. Neither knows what a step does.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import anyio
import anyio.lowlevel

from voiceloop.engines import Steps, first

T = TypeVar("T")

FIRST, LATER = 0, 10
"""Priorities on a model: committed work before speculative, a final decode before a partial one.
Between them lies committed work that can wait for some seconds, a level for each."""
URGENT = -1_000_000
"""Priority of closing a generator: a cancelled reply gives its model back before anything runs."""

_DONE: Any = object()


@dataclass(order=True, slots=True)
class _Job:
    priority: int
    number: int
    run: Callable[[], object] = field(compare=False)
    done: asyncio.Future[Any] = field(compare=False)
    queued: float = field(compare=False)


class ModelThread:
    """A thread that executes one model's steps by priority, then by order of arrival.

    Use it as a context manager; leaving it waits for the running step. Its methods are called on
    one asyncio event loop.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.waited: Callable[[str, float], None] = lambda name, seconds: None
        """Told how long each job waited for the thread, on the thread."""
        self._jobs: list[_Job] = []
        self._count = itertools.count()
        self._changed = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._work, name=f"voiceloop-{name}", daemon=True)

    def __enter__(self) -> ModelThread:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._open = False
            self._changed.notify()
        self._thread.join()

    async def call(self, job: Callable[[], T], *, priority: int = 0) -> T:
        """Run `job` on the thread.

        A cancelled call that has begun runs to its end unseen; one that has not is dropped.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._changed:
            heapq.heappush(self._jobs, _Job(priority, next(self._count), job, done, perf_counter()))
            self._changed.notify()
        return await done

    def stream(
        self, steps: Steps[T], *, priority: Callable[[], int] = first
    ) -> AsyncGenerator[T, None]:
        """Advance `steps` on the thread as the consumer asks, up to the next result.

        Between steps without a result the thread looks whether the stream has been closed or a job
        that goes before waits; if not, the next step follows without a way through the loop.
        """
        closed = threading.Event()

        def advance(level: int) -> T | None:
            while (item := next(steps, _DONE)) is None:
                if closed.is_set() or self._goes_before(level):
                    break
            return item

        return _stream(self.call, advance, steps, priority, closed.set)

    def _goes_before(self, priority: int) -> bool:
        """Whether a job waits that must not wait for one of `priority`."""
        with self._changed:
            return bool(self._jobs) and self._jobs[0].priority <= priority

    def _work(self) -> None:
        while True:
            with self._changed:
                while self._open and not self._jobs:
                    self._changed.wait()
                if not self._jobs:
                    return
                job = heapq.heappop(self._jobs)
            if job.done.cancelled():
                continue
            self.waited(self.name, perf_counter() - job.queued)
            deliver: Callable[[Any], None]
            try:
                outcome, deliver = job.run(), job.done.set_result
            except BaseException as error:  # the caller's to handle, on the loop
                outcome, deliver = error, job.done.set_exception
            job.done.get_loop().call_soon_threadsafe(_settle, job.done, deliver, outcome)


def _settle(done: asyncio.Future[Any], deliver: Callable[[Any], None], outcome: object) -> None:
    if not done.cancelled():
        deliver(outcome)


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """A scripted step's result and what the step costs, in seconds."""

    value: T
    cost: float


class InlineRunner:
    """Runs steps on the event loop; a `Timed` result is delivered after its cost has passed.

    Like a thread it executes one step at a time, the smallest priority first.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, anyio.Event]] = []
        self._count = itertools.count()
        self._busy = False

    async def call(self, job: Callable[[], T], *, priority: int = 0) -> T:
        """Run `job` now, or once the step that occupies the runner is over."""
        await anyio.lowlevel.checkpoint()  # as on a thread, a cancelled call does not begin
        async with self._turn(priority):
            result = job()
            if isinstance(result, Timed):
                timed = cast("Timed[T]", result)
                await anyio.sleep(timed.cost)
                return timed.value
            return result

    def stream(
        self, steps: Steps[T], *, priority: Callable[[], int] = first
    ) -> AsyncGenerator[T, None]:
        """Advance `steps`, a step at a time, as the consumer asks."""
        return _stream(self.call, lambda level: next(steps, _DONE), steps, priority)

    @asynccontextmanager
    async def _turn(self, priority: int) -> AsyncGenerator[None, None]:
        if self._busy:
            ticket = (priority, next(self._count), anyio.Event())
            heapq.heappush(self._waiting, ticket)
            try:
                await ticket[2].wait()
            except BaseException:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                    heapq.heapify(self._waiting)
                else:  # the runner was handed over in the moment of cancellation
                    self._pass_on()
                raise
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            heapq.heappop(self._waiting)[2].set()
        else:
            self._busy = False


async def _stream(
    call: Callable[..., Any],
    advance: Callable[[int], T | None],
    steps: Steps[T],
    priority: Callable[[], int],
    closing: Callable[[], None] = lambda: None,
) -> AsyncGenerator[T, None]:
    try:
        while True:
            level = priority()
            item = await call(partial(advance, level), priority=level)
            if item is _DONE:
                break
            if item is not None:
                yield item
    finally:
        closing()
        # Only here does the engine's own clean-up run, on its own thread and after its last step.
        with anyio.CancelScope(shield=True):
            await call(steps.close, priority=URGENT)
