"""Measures how long a device takes for some work."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from time import perf_counter  # noqa: TID251 -- engines do not run on the loop, whose clock it is
from typing import TypeVar

import torch

T = TypeVar("T")


class Stopwatch:
    """Adds up the times of pieces of work, without the time between them.

    Use it as a context manager around each piece. On CUDA it puts marks into the device's own queue
    where a piece begins and ends. In this way measuring does not wait for the device.
    """

    def __init__(self, device: torch.device, clock: Callable[[], float] = perf_counter) -> None:
        """`clock` returns the time in seconds. On CUDA the device's own clock is used instead."""
        self._device = device
        self._clock = clock
        self._times: list[float] = []
        self._events: list[torch.cuda.Event] = []

    def __enter__(self) -> None:
        self._mark()

    def __exit__(self, *exception: object) -> None:
        self._mark()

    def steps(self, work: Generator[None, None, T]) -> Generator[None, None, T]:
        """Run the step generator `work` and measure each of its steps. Return its result."""
        with closing(work):
            while True:
                with self:
                    try:
                        next(work)
                    except StopIteration as end:
                        return end.value
                yield None

    def take(self) -> float:
        """Return the total time of the pieces since the last call, in ms. On CUDA, wait until the
        device has finished them."""
        times, events = self._times, self._events
        self._times, self._events = [], []
        if events:
            events[-1].synchronize()
            return sum(a.elapsed_time(b) for a, b in zip(events[::2], events[1::2], strict=True))
        return 1000 * sum(b - a for a, b in zip(times[::2], times[1::2], strict=True))

    def _mark(self) -> None:
        if self._device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(self._device))
            self._events.append(event)
        else:
            self._times.append(self._clock())
