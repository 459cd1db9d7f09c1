"""Only the work is timed, not what lies between."""

from __future__ import annotations

from collections.abc import Generator

import pytest
import torch

from voiceloop.llm.model.timing import Stopwatch

pytestmark = pytest.mark.pure


class Clock:
    """Stands still but for what is added."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_pieces_add_up_without_what_lies_between_and_begin_anew_when_taken() -> None:
    clock = Clock()
    watch = Stopwatch(torch.device("cpu"), clock)
    assert watch.take() == 0
    for seconds in (0.25, 0.5):
        with watch:
            clock.now += seconds
        clock.now += 100
    assert watch.take() == 750
    assert watch.take() == 0


def test_the_steps_of_a_generator_are_timed_and_its_pauses_are_not() -> None:
    clock, closed = Clock(), []
    watch = Stopwatch(torch.device("cpu"), clock)

    def work() -> Generator[None, None, str]:
        try:
            for _ in range(3):
                clock.now += 1
                yield None
            return "done"
        finally:
            closed.append(True)

    def outer() -> Generator[None, None, str]:
        return (yield from watch.steps(work()))

    steps = outer()
    with pytest.raises(StopIteration, match="done"):
        while True:
            next(steps)
            clock.now += 100
    assert watch.take() == 3000 and closed == [True]
    steps = outer()
    next(steps)
    steps.close()
    assert watch.take() == 1000 and closed == [True, True]


def test_work_that_fails_was_work() -> None:
    clock = Clock()
    watch = Stopwatch(torch.device("cpu"), clock)
    with pytest.raises(ZeroDivisionError), watch:
        clock.now += 2
        _ = 1 / 0
    assert watch.take() == 2000


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpus_time_is_known_without_waiting_in_between() -> None:
    watch = Stopwatch(torch.device("cuda"))
    x = torch.randn(2048, 2048, device="cuda")
    for _ in range(3):
        with watch:
            x = x @ x
    assert watch.take() > 0
    assert watch.take() == 0
