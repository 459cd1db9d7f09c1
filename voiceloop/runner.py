"""Runners: what executes the steps of engines, one step of one model at a time.

`ModelThread` is the production Runner: a thread per model, so that a long step never stops the
event loop, and steps of one model never run side by side. It loads its model too: much of what a
first call sets up belongs to the thread that made it. `InlineRunner` executes the same steps on the
event loop and sleeps for what a scripted engine states that they cost; a waiting thread would count
as idleness on a virtual clock. Neither knows what a step does.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import anyio
import anyio.lowlevel

from voiceloop.engines import FIRST, IDLE, URGENT, Priority, Steps
from voiceloop.threads import at_work

T = TypeVar("T")
M = TypeVar("M")

LINGER_S = 0.002
"""A thread that has just given a result waits so long for its consumer to ask for the next one
before it begins something less urgent, which may take many times that (anticipatory scheduling,
Iyer and Druschel 2001)."""

_DONE: Any = object()
_AT_ONCE = Priority(FIRST - 1)
"""The priority of closing: a cancelled reply gives its model back before anything runs."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A place in a runner's line."""

    priority: Priority
    number: int

    def key(self) -> tuple[int, int]:
        """The smallest goes first."""
        return self.priority.level, self.number


@dataclass(frozen=True, slots=True, eq=False)
class _Job(_Waiting):
    run: Callable[[], object]
    done: asyncio.Future[Any]
    queued: float
    goes_on: bool
    """A stream's: another is likely to follow."""


@dataclass(frozen=True, slots=True, eq=False)
class _WaitTicket(_Waiting):
    called: anyio.Event


class _Quiet:
    """How long nobody has wanted anything but in idle time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._wanted = 0
        """Steps that somebody waits for."""
        self._since = -math.inf
        """When there was one last."""

    @contextmanager
    def until_done(self, priority: Priority) -> Iterator[None]:
        """Within it somebody waits for a step of this priority."""
        if priority.level >= IDLE:
            yield
            return
        self._wanted += 1
        try:
            yield
        finally:
            self._wanted -= 1
            self._since = self._clock()

    def seconds(self) -> float:
        """See `Runner.quiet_s`."""
        return 0.0 if self._wanted else self._clock() - self._since


class ModelThread(Generic[M]):
    """A thread that loads one model and then executes its steps, by priority, then by order of
    arrival.

    It runs from the beginning; where the program is interrupted nothing waits for it. Use it as a
    context manager once the model is there; leaving it waits for the running step. Its methods are
    called on one asyncio event loop.
    """

    def __init__(self, name: str, load: Callable[[], M]) -> None:
        self.name = name
        self.model: Future[M] = Future()
        """What `load` has returned, or raised."""
        self.waited: Callable[[str, float], None] = lambda name, seconds: None
        """Told how long each job waited for the thread, on the thread."""
        self._quiet = _Quiet(perf_counter)
        self._jobs: list[_Job] = []
        """Few: a handful for each session that is being spoken to."""
        self._count = itertools.count()
        self._changed = threading.Condition()
        self._open = True
        self._thread = threading.Thread(
            target=self._run, args=[load], name=f"voiceloop-{name}", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> ModelThread[M]:
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

    async def call(self, job: Callable[[], T], *, priority: Priority = URGENT) -> T:
        """Run `job` on the thread.

        A cancelled call that has begun runs to its end unseen; one that has not is dropped.
        """
        return await self._submit(job, priority, goes_on=False)

    def stream(self, steps: Steps[T], *, priority: Priority = URGENT) -> AsyncGenerator[T, None]:
        """Advance `steps` on the thread as the consumer asks, up to the next result.

        Between steps without a result the thread looks whether the stream has been closed or a job
        that goes before waits; if not, the next step follows without a way through the loop.
        """
        closed = threading.Event()

        def advance() -> T | None:
            while (item := next(steps, _DONE)) is None:
                if closed.is_set() or self._goes_before(priority):
                    break
            return item

        async def step() -> T | None:
            return await self._submit(advance, priority, goes_on=True)

        return _stream(step, self.call, steps, closed.set)

    async def _submit(self, run: Callable[[], T], priority: Priority, *, goes_on: bool) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._changed:
            number = next(self._count)
            self._jobs.append(_Job(priority, number, run, done, perf_counter(), goes_on))
            self._changed.notify()
        with self._quiet.until_done(priority):
            try:
                return await done
            except BaseException:
                with self._changed:  # nothing is reported any more to a loop that may end now
                    done.cancel()
                raise

    def quiet_s(self) -> float:
        """Seconds for which nobody has wanted anything but in idle time."""
        return self._quiet.seconds()

    def _goes_before(self, priority: Priority) -> bool:
        """Whether a job waits that must not wait for one of `priority`."""
        with self._changed:
            return any(job.priority.level <= priority.level for job in self._jobs)

    def _next(self, after: int | None) -> _Job | None:
        """The most urgent job, once there is one; none where there will be no more.

        Where one of priority `after` has just given a result, its next step may be about to come.
        """
        with self._changed:
            if after is not None and self._open:
                self._changed.wait_for(
                    lambda: any(job.priority.level <= after for job in self._jobs), LINGER_S
                )
            while self._open and not self._jobs:
                self._changed.wait()
            if not self._jobs:
                return None
            job = min(self._jobs, key=_Job.key)
            self._jobs.remove(job)
            return job

    def _run(self, load: Callable[[], M]) -> None:
        try:
            model = load()
        except BaseException as error:  # raised where the model is asked for
            self.model.set_exception(error)
            return
        self.model.set_result(model)
        del load, model  # or they would stay for as long as the thread
        self._work()

    def _work(self) -> None:
        after: int | None = None
        while (job := self._next(after)) is not None:
            after = None
            if job.done.cancelled():
                continue
            self.waited(self.name, perf_counter() - job.queued)
            deliver: Callable[[Any], None]
            try:
                with at_work():
                    outcome, deliver = job.run(), job.done.set_result
                if job.goes_on and outcome is not _DONE:
                    after = job.priority.level
            except BaseException as error:  # the caller's to handle, on the loop
                outcome, deliver = error, job.done.set_exception
            with self._changed:
                # The loop is there for as long as somebody on it waits.
                if not job.done.cancelled():
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
        self._quiet = _Quiet(anyio.current_time)
        self._waiting: list[_WaitTicket] = []
        self._count = itertools.count()
        self._busy = False

    async def call(self, job: Callable[[], T], *, priority: Priority = URGENT) -> T:
        """Run `job` now, or once the step that occupies the runner is over."""
        await anyio.lowlevel.checkpoint()  # as on a thread, a cancelled call does not begin
        with self._quiet.until_done(priority):
            return await self._step(job, priority)

    def quiet_s(self) -> float:
        """Seconds for which nobody has wanted anything but in idle time."""
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
        """Advance `steps`, a step at a time, as the consumer asks."""

        async def step() -> T | None:
            return await self.call(partial(next, steps, _DONE), priority=priority)

        return _stream(step, self.call, steps)

    @asynccontextmanager
    async def _turn(self, priority: Priority) -> AsyncGenerator[None, None]:
        if self._busy:
            ticket = _WaitTicket(priority, next(self._count), anyio.Event())
            self._waiting.append(ticket)
            try:
                await ticket.called.wait()
            except BaseException:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
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
            ticket = min(self._waiting, key=_WaitTicket.key)
            self._waiting.remove(ticket)
            ticket.called.set()
        else:
            self._busy = False


async def _stream(
    step: Callable[[], Awaitable[T | None]],
    call: Callable[..., Awaitable[object]],
    steps: Steps[T],
    closing: Callable[[], None] = lambda: None,
) -> AsyncGenerator[T, None]:
    try:
        while (item := await step()) is not _DONE:
            if item is not None:
                yield item
    finally:
        closing()
        # Only here does the engine's own clean-up run, on its own thread and after its last step.
        with anyio.CancelScope(shield=True):
            await call(steps.close, priority=_AT_ONCE)
