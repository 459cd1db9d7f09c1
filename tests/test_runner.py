"""Runners: one step at a time, by priority, and always given back."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from functools import partial

import anyio
import pytest
from anyio.abc import TaskGroup

from tests.support.clock import VirtualClock
from tests.support.runner import InlineRunner, Timed
from voiceloop.engines import FIRST, IDLE, IN_IDLE_TIME, LATER, Priority, Steps
from voiceloop.runner import ModelThread

pytestmark = pytest.mark.virtual


@pytest.fixture(params=["thread", "inline"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    if request.param == "thread":
        return "asyncio"
    return "asyncio", {"loop_factory": VirtualClock().loop}


@pytest.fixture
def runner(request: pytest.FixtureRequest) -> Iterator[ModelThread | InlineRunner]:
    if request.node.callspec.params["anyio_backend"] == "thread":
        with ModelThread("test", lambda: None) as thread:
            yield thread
    else:
        yield InlineRunner()


def counting(log: list[str], n: int) -> Steps[int]:
    try:
        for i in range(n):
            log.append(f"step {i}")
            yield None
            yield i
    finally:
        log.append("closed")


@asynccontextmanager
async def occupied(runner: ModelThread | InlineRunner) -> AsyncIterator[TaskGroup]:
    """A runner at work on something else until the block ends, and tasks that end after it."""
    hold = threading.Event()
    busy = (lambda: Timed(None, 1.0)) if isinstance(runner, InlineRunner) else hold.wait
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.call, busy)
        await anyio.wait_all_tasks_blocked()
        try:
            yield tasks
        finally:
            hold.set()


@pytest.mark.anyio
async def test_a_model_is_loaded_on_the_thread_that_runs_its_steps() -> None:
    with ModelThread("test", threading.get_ident) as thread:
        assert thread.model.result() == await thread.call(threading.get_ident)
        assert thread.model.result() != threading.get_ident()


def test_what_loading_raises_is_raised_where_the_model_is_asked_for() -> None:
    with ModelThread("test", lambda: [][0]) as thread, pytest.raises(IndexError):
        thread.model.result()


def test_a_step_that_ends_after_the_loop_has_closed_is_told_to_nobody() -> None:
    begun, over = threading.Event(), threading.Event()

    def step() -> None:
        begun.set()
        over.wait()

    async def interrupted(runner: ModelThread[None]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.call, step)
            await anyio.to_thread.run_sync(begun.wait)
            tasks.cancel_scope.cancel()

    with ModelThread("test", lambda: None) as runner:
        anyio.run(interrupted, runner)
        over.set()  # what the thread raised would fail the test when it is joined


@pytest.mark.anyio
async def test_a_stream_yields_results_in_order_and_drops_the_nones(runner: ModelThread) -> None:
    log: list[str] = []
    assert [i async for i in runner.stream(counting(log, 3))] == [0, 1, 2]
    assert log == ["step 0", "step 1", "step 2", "closed"]


@pytest.mark.anyio
async def test_closing_a_stream_closes_its_steps_before_it_returns(runner: ModelThread) -> None:
    log: list[str] = []
    async with aclosing(runner.stream(counting(log, 100))) as items:
        async for item in items:
            if item == 1:
                break
    assert log == ["step 0", "step 1", "closed"]
    assert await runner.call(lambda: "usable") == "usable"


@pytest.mark.anyio
async def test_cancelling_a_consumer_closes_the_steps(runner: ModelThread) -> None:
    log: list[str] = []
    with anyio.CancelScope() as scope:
        async with aclosing(runner.stream(counting(log, 100))) as items:
            async for item in items:
                if item == 2:
                    scope.cancel()
    assert log[-1] == "closed" and "step 4" not in log


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["thread"], indirect=True)
async def test_between_steps_without_a_result_others_go_first_and_closing_is_seen() -> None:
    log: list[str] = []
    at_two, go_on = threading.Event(), threading.Event()

    def steps() -> Steps[int]:
        try:
            for i in range(100):
                log.append(f"step {i}")
                if i == 2:
                    at_two.set()
                    go_on.wait()
                yield None
        finally:
            log.append("closed")

    async def consume(runner: ModelThread) -> None:
        async with aclosing(runner.stream(steps(), priority=Priority(5))) as items:
            async for _ in items:
                pass

    async def submit(runner: ModelThread, name: str, priority: int) -> None:
        await runner.call(lambda: log.append(name), priority=Priority(priority))

    with ModelThread("test", lambda: None) as runner:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume, runner)
            await anyio.to_thread.run_sync(at_two.wait)
            for name, priority in (("before", 1), ("alike", 5), ("after", 9)):
                tasks.start_soon(submit, runner, name, priority)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
    assert log[:5] == ["step 0", "step 1", "step 2", "before", "alike"]
    assert log[-1] != "step 99" and "closed" in log and "after" in log

    log.clear()
    at_two.clear()
    go_on.clear()

    async def release() -> None:
        await anyio.wait_all_tasks_blocked()  # the stream is being closed
        go_on.set()

    with ModelThread("test", lambda: None) as runner:
        async with anyio.create_task_group() as others, anyio.create_task_group() as tasks:
            tasks.start_soon(consume, runner)
            await anyio.to_thread.run_sync(at_two.wait)
            tasks.cancel_scope.cancel()
            others.start_soon(release)
    assert log == ["step 0", "step 1", "step 2", "closed"]


@pytest.mark.anyio
async def test_an_error_in_a_step_reaches_the_consumer(runner: ModelThread) -> None:
    def failing() -> Steps[int]:
        yield 1
        raise ValueError("broken")

    seen: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        async for item in runner.stream(failing()):
            seen.append(item)  # noqa: PERF401 - the items before the error are the point
    assert seen == [1]


@pytest.mark.anyio
async def test_a_job_that_raises_stop_iteration_is_an_error_and_not_a_hang(
    runner: ModelThread,
) -> None:
    with anyio.fail_after(5), pytest.raises(RuntimeError, match="StopIteration"):
        await runner.call(partial(next, iter(())))


@pytest.mark.anyio
async def test_waiting_jobs_run_by_priority_then_in_order(runner: ModelThread) -> None:
    ran: list[str] = []

    async def submit(name: str, priority: int) -> None:
        await runner.call(lambda: ran.append(name), priority=Priority(priority))

    async with occupied(runner) as tasks:
        for name, priority in (("b", 5), ("a", 1), ("c", 5), ("first", -1)):
            tasks.start_soon(submit, name, priority)
            await anyio.wait_all_tasks_blocked()
    assert ran == ["first", "a", "b", "c"]


@pytest.mark.anyio
async def test_a_stream_is_as_urgent_as_it_says_before_each_step(runner: ModelThread) -> None:
    ran: list[str] = []
    urgency = Priority(1)

    def steps() -> Steps[str]:
        for _ in range(3):
            ran.append("step")
            yield "item"

    async def consume() -> None:
        async with aclosing(runner.stream(steps(), priority=urgency)) as items:
            async for _ in items:
                urgency.level = 9

    async def submit(name: str) -> None:
        await runner.call(lambda: ran.append(name), priority=Priority(5))

    async with occupied(runner) as tasks:
        for name in ("a", "b"):
            tasks.start_soon(submit, name)
            await anyio.wait_all_tasks_blocked()
        tasks.start_soon(consume)
        await anyio.wait_all_tasks_blocked()
    assert ran == ["step", "a", "b", "step", "step"]


@pytest.mark.anyio
async def test_what_becomes_urgent_while_it_waits_goes_before(runner: ModelThread) -> None:
    ran: list[str] = []
    priorities = {"a": Priority(5), "b": Priority(9)}

    async def submit(name: str) -> None:
        await runner.call(lambda: ran.append(name), priority=priorities[name])

    async with occupied(runner) as tasks:
        for name in priorities:
            tasks.start_soon(submit, name)
            await anyio.wait_all_tasks_blocked()
        priorities["b"].level = 0
    assert ran == ["b", "a"]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["thread"], indirect=True)
async def test_the_next_step_of_what_is_urgent_goes_before_what_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("voiceloop.runner.LINGER_S", 10.0)
    ran: list[str] = []
    hold = threading.Event()

    def steps() -> Steps[int]:
        hold.wait()
        for i in range(3):
            ran.append(f"step {i}")
            yield i

    async def consume(runner: ModelThread) -> None:
        async with aclosing(runner.stream(steps())) as items:
            async for _ in items:
                pass

    with ModelThread("test", lambda: None) as runner:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume, runner)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(
                partial(runner.call, partial(ran.append, "late"), priority=Priority(9))
            )
            await anyio.wait_all_tasks_blocked()
            hold.set()
    assert ran == ["step 0", "step 1", "step 2", "late"]


@pytest.mark.anyio
async def test_a_cancelled_waiting_job_never_runs(runner: ModelThread) -> None:
    ran: list[str] = []
    async with occupied(runner):
        with anyio.move_on_after(0.01):
            await runner.call(lambda: ran.append("late"))
    assert ran == []
    await runner.call(lambda: ran.append("next"))
    assert ran == ["next"]


async def test_quiet_is_what_nobody_waits_for_but_in_idle_time(
    runner: ModelThread | InlineRunner,
) -> None:
    assert runner.quiet_s() == math.inf
    await runner.call(lambda: Timed(None, 1.0), priority=IN_IDLE_TIME)
    assert runner.quiet_s() == math.inf
    async with occupied(runner) as tasks:
        assert runner.quiet_s() == 0
        tasks.start_soon(partial(runner.call, lambda: None, priority=IN_IDLE_TIME))
        assert runner.quiet_s() == 0
    done = runner.quiet_s()
    assert 0 <= done < math.inf
    await runner.call(lambda: None, priority=IN_IDLE_TIME)
    assert runner.quiet_s() >= done


async def test_what_can_wait_for_idle_time_goes_last(runner: ModelThread | InlineRunner) -> None:
    order: list[int] = []
    async with occupied(runner) as tasks:
        for priority in (IDLE, LATER, FIRST):
            job = partial(order.append, priority)
            tasks.start_soon(partial(runner.call, job, priority=Priority(priority)))
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
    assert order == [FIRST, LATER, IDLE]
