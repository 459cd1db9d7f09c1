"""Work that is recorded once and then repeated: the same operations at the same addresses.

On a GPU most of a small pass is the time that the processor needs to ask for each of its hundreds
of operations. A captured graph is asked for at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter  # noqa: TID251 -- engines do not run on the loop, whose clock it is
from typing import Protocol

import torch

logger = logging.getLogger(__name__)


class Graph(Protocol):
    """Work that can be repeated."""

    def replay(self) -> None:
        """Do it again, on what now lies at the addresses that it reads."""
        ...


Capture = Callable[[Callable[[], None]], Graph]
"""Makes a graph of work that has been done at least once before. The work reads and writes tensors
that stay where they are, reads nothing back from the device, and is the same each time."""


class Plainly:
    """Work that is asked for one operation after the other, each time."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def replay(self) -> None:
        """See `Graph.replay`."""
        self._work()


class CudaGraphs:
    """Captures on the stream and thread that it is called on, with the stream's priority, and with
    memory for all its graphs in common: they are replayed one after the other, and keep nothing
    there in between."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._told = False

    def __call__(self, work: Callable[[], None]) -> Graph:
        """See `Capture`. What cannot be captured is done plainly, which is said once."""
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        own = None if stream == torch.cuda.default_stream() else stream  # it can capture nothing
        torch.cuda.empty_cache()  # as capturing does, or what it takes would be less than nothing
        began, held = perf_counter(), torch.cuda.memory_reserved()
        try:
            # Other threads' models may go on: only this thread's calls are looked at.
            with torch.cuda.graph(
                graph, pool=self._pool, stream=own, capture_error_mode="thread_local"
            ):
                work()
        except RuntimeError as error:
            if not self._told:
                logger.warning("rounds are not captured: %s", str(error).partition("\n")[0])
            self._told = True
            return Plainly(work)
        taken = torch.cuda.memory_reserved() - held
        logger.info("captured in %.2f s, %.1f MB", perf_counter() - began, taken / 1e6)
        return graph
