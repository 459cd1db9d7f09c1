"""Measures how long a device takes for some work, and what passes over several rows cost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from time import perf_counter  # noqa: TID251 -- engines do not run on the loop, whose clock it is
from typing import TYPE_CHECKING, TypeVar

import torch

from voiceloop.llm.model.cache import KvCache

if TYPE_CHECKING:
    from voiceloop.llm.model.decoder import CausalModel

T = TypeVar("T")
ROWS = (1, 4, 2, 3, 5, 8, 9, 12, 13, 16, 17)
"""The numbers of rows that are measured, the most important ones first."""
TIMES = 3
"""Number of passes for each number of rows. The shortest counts: others were disturbed."""
ROOM = 1 + TIMES * sum(ROWS)
"""The number of rows of all passes together, with a first one that is not measured."""
LIMIT_S = 1.0
"""Time limit of all passes together, in seconds. The last pass may exceed it."""


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


@torch.inference_mode()
def row_costs(model: CausalModel, capacity: int) -> Mapping[int, float]:
    """Return the time of a pass for each number of rows that was measured, relative to a pass over
    one row. All rows of a pass give logits, as in a round of speculative decoding. `capacity` is
    the maximum length of a sequence in tokens, two or more.

    The cost is no line: the kernels of a processor work on groups of rows, so four rows may cost
    less than three, and five as much as eight. And it is different for each model, library and
    processor.
    """
    watch, cache = Stopwatch(model.device), KvCache(capacity)
    zeros = torch.zeros(min(capacity, ROWS[-1]), dtype=torch.long, device=model.device)
    found, spent = dict[int, float](), 0.0
    for rows in ROWS * TIMES:
        if rows >= capacity:
            continue
        if cache.length + rows > capacity:  # a rollback could take time of its own
            cache = KvCache(capacity)
        if not cache.length:  # this makes its buffers
            model.forward(zeros[:1], cache, 1)
        with watch:
            model.forward(zeros[:rows], cache, rows)
        took = watch.take()
        found[rows] = min(took, found.get(rows, took))
        spent += took
        if spent > 1000 * LIMIT_S:
            break
    return {rows: took / found[1] for rows, took in found.items()}
