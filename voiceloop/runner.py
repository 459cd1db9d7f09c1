"""Runners: they execute the steps of engines, one step of one model at a time.

`ModelThread` is the Runner of production. Each model has a thread, so a long step never stops the
event loop, and steps of one model never run in parallel. The thread loads its model too, since
libraries set up much of their state per thread.

A runner does not know what a step does.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import math
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel

from voiceloop.engines import FIRST, IDLE, URGENT, Priority, Runner, Steps
from voiceloop.errors import VoiceloopError
from voiceloop.process import at_work

T = TypeVar("T")
M = TypeVar("M")

LINGER_S = 0.002
"""Seconds that a thread waits after a result of a stream before it begins less urgent work.

The consumer of the stream may soon request the next step, and other work may take much longer
(anticipatory scheduling, Iyer and Druschel 2001).
"""

LOADING_S = 10.0
"""Maximum seconds for which the end of a program waits for a background job whose result nobody
wants. Python aborts if it ends while libraries compute."""

DONE: Any = object()
"""What a step returns once its stream is over."""
_AT_ONCE = Priority(FIRST - 1)
"""The priority of closing a stream, before all other work. Closing frees the model of a cancelled
reply."""


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """A job in the queue of a thread."""

    priority: Priority
    number: int
    run: Callable[[], object]
    done: asyncio.Future[Any]
    queued: float
    goes_on: bool
    """True for a step of a stream: another is likely to follow."""

    def key(self) -> tuple[int, int]:
        """Return the sort key: by priority, then by order of arrival; the smallest is next."""
        return self.priority.level, self.number


class Quiet:
    """A clock of the seconds since the last work. Work in idle time (`IDLE`) does not count."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._wanted = 0
        """Number of steps that somebody waits for now, without those in idle time."""
        self._since = -math.inf
        """The moment on the clock at which the last of these steps ended."""

    @contextmanager
    def until_done(self, priority: Priority) -> Iterator[None]:
        """Count a step of this priority as work while the context lasts."""
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
        """Return the seconds since the end of the last work that counts; 0 during such work."""
        return 0.0 if self._wanted else self._clock() - self._since


class ModelThread(Generic[M]):
    """A thread that loads one model and executes its steps, by priority and order of arrival.

    The thread starts at once, as a daemon, so an interrupted program does not wait for it. Use this
    object as a context manager once the model is loaded. Leaving the context waits for the running
    step. Call the methods on one asyncio event loop.
    """

    def __init__(self, name: str, load: Callable[[], M]) -> None:
        self.name = name
        self.model: Future[M] = Future()
        """The result of `load`, or its error."""
        self.waited: Callable[[str, float], None] = lambda name, seconds: None
        """A function that the thread calls before each job. The arguments are the name of this
        object and the seconds for which the job has waited."""
        self._quiet = Quiet(perf_counter)
        self._jobs: list[_Job] = []
        """Waiting jobs. There are few, a handful for each busy session, so a list is searched."""
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
        """Run `job` on the thread and return its result.

        If the call is cancelled, a job that has not begun is dropped. One that has begun runs to
        its end, and its result is dropped.
        """
        return await self._submit(job, priority, goes_on=False)

    def stream(self, steps: Steps[T], *, priority: Priority = URGENT) -> AsyncGenerator[T, None]:
        """Advance `steps` on the thread to the next result, each time the consumer requests one.

        Steps without a result follow each other on the thread, without a round trip through the
        event loop, until the stream is closed or a job of at least the same urgency waits.
        """
        closed = threading.Event()

        def advance() -> T | None:
            while (item := next(steps, DONE)) is None:
                if closed.is_set() or self._goes_before(priority):
                    break
            return item

        async def step() -> T | None:
            return await self._submit(advance, priority, goes_on=True)

        return streamed(step, self.call, steps, closed.set)

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
                with self._changed:  # so that the thread does not call a loop that may have ended
                    done.cancel()
                raise

    def quiet_s(self) -> float:
        """Return the seconds since the end of the last work with a level below `IDLE`; 0 during
        such work."""
        return self._quiet.seconds()

    def _goes_before(self, priority: Priority) -> bool:
        """Return whether a job waits that is at least as urgent as `priority`."""
        with self._changed:
            return any(job.priority.level <= priority.level for job in self._jobs)

    def _next(self, after: int | None) -> _Job | None:
        """Wait for a job and return the most urgent one; None when the thread is to end.

        `after` is the priority of a stream that has just given a result. Its next step may follow
        at once, so less urgent jobs wait for up to `LINGER_S`.
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
        except BaseException as error:  # raised when the model is read
            self.model.set_exception(error)
            return
        self.model.set_result(model)
        del load, model  # otherwise the thread would keep them alive
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
                if job.goes_on and outcome is not DONE:
                    after = job.priority.level
            except BaseException as error:  # raised in the caller, on the loop
                outcome, deliver = _deliverable(error), job.done.set_exception
            with self._changed:
                # The loop cannot have ended while the caller still waits on it.
                if not job.done.cancelled():
                    job.done.get_loop().call_soon_threadsafe(_settle, job.done, deliver, outcome)


def _settle(done: asyncio.Future[Any], deliver: Callable[[Any], None], outcome: object) -> None:
    if not done.cancelled():
        deliver(outcome)


def _deliverable(error: BaseException) -> BaseException:
    """Return `error`, or a RuntimeError for a StopIteration, which futures of asyncio refuse."""
    if not isinstance(error, StopIteration):
        return error
    raised = RuntimeError("a job raised StopIteration")
    raised.__cause__ = error
    return raised


async def run_on(runner: Runner | None, job: Callable[[], T]) -> T:
    """Run `job` on `runner`, or at once if that is None."""
    return job() if runner is None else await runner.call(job)


async def run_through(runner: Runner, steps: Steps[Any], *, priority: Priority) -> None:
    """Run `steps` to their end on `runner`."""
    async with aclosing(runner.stream(steps, priority=priority)) as results:
        async for _ in results:
            pass


async def in_background(job: Callable[[], T], unwanted: Callable[[T], None]) -> T:
    """Run `job` on a daemon thread and return its result.

    If the call is cancelled, `job` runs to its end. Then `unwanted` is called with its result, on a
    daemon thread too. A program that ends meanwhile waits `LOADING_S` seconds at most. Raises
    VoiceloopError if the event loop is not asyncio's.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise VoiceloopError(
            "voiceloop runs on asyncio, and this is another event loop", "use asyncio.run"
        ) from None
    done = Future[T]()

    def run() -> None:
        try:
            made = job()
        except BaseException as error:  # raised in the caller, unless that was cancelled
            with suppress(InvalidStateError):
                done.set_exception(_deliverable(error))
            return
        try:
            done.set_result(made)
        except InvalidStateError:  # the caller was cancelled
            unwanted(made)
            atexit.unregister(thread.join)

    thread = threading.Thread(target=run, name="voiceloop-open", daemon=True)
    thread.start()
    try:
        return await asyncio.wrap_future(done, loop=loop)
    except BaseException:
        if done.cancel():
            atexit.register(thread.join, LOADING_S)
        elif done.exception() is None:
            closing = threading.Thread(target=unwanted, args=[done.result()], daemon=True)
            closing.start()
        raise


async def streamed(
    step: Callable[[], Awaitable[T | None]],
    call: Callable[..., Awaitable[object]],
    steps: Steps[T],
    closing: Callable[[], None] = lambda: None,
) -> AsyncGenerator[T, None]:
    """Yield the results of `step`, which advances `steps`, until it returns `DONE`. At the end,
    call `closing`, and close `steps` by `call`."""
    try:
        while (item := await step()) is not DONE:
            if item is not None:
                yield item
    finally:
        closing()
        # The engine's clean-up has to run on its own thread, after its last step.
        with anyio.CancelScope(shield=True):
            await call(steps.close, priority=_AT_ONCE)
