"""Work that is recorded once and then replayed: the same operations at the same addresses.

On a GPU most of the time of a small pass goes into launching its hundreds of kernels one by one. A
captured graph is launched in one call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter  # noqa: TID251 -- engines do not run on the loop, whose clock it is
from typing import Protocol

import torch

logger = logging.getLogger(__name__)


class Graph(Protocol):
    """Work that can be replayed."""

    def replay(self) -> None:
        """Run the work again, on the present values at the addresses that it reads."""
        ...


Capture = Callable[[Callable[[], None]], Graph]
"""The type of a function that makes a graph of a piece of work. The work must have run once before.
It must be the same each time, read and write tensors at fixed addresses, and read nothing back from
the device."""


class Plainly:
    """A graph that runs its work again instead of replaying captured work."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def replay(self) -> None:
        self._work()


class CudaGraphs:
    """Captures work as CUDA graphs, on the stream and thread of the caller.

    All graphs share one pool of memory. This is safe because they are replayed one after the other,
    and a graph keeps nothing in the pool after its replay.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._warned = False

    def __call__(self, work: Callable[[], None]) -> Graph:
        """Capture `work`. If it cannot be captured, it runs uncaptured, and that is logged once."""
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        own = (
            None if stream == torch.cuda.default_stream() else stream
        )  # the default stream cannot capture
        # Capturing empties the cache as well, and that would make `taken` negative.
        torch.cuda.empty_cache()
        began, held = perf_counter(), torch.cuda.memory_reserved()
        try:
            # Models on other threads may go on: only calls of this thread are checked.
            with torch.cuda.graph(
                graph, pool=self._pool, stream=own, capture_error_mode="thread_local"
            ):
                work()
        except RuntimeError as error:
            if not self._warned:
                logger.warning("rounds are not captured: %s", str(error).partition("\n")[0])
            self._warned = True
            return Plainly(work)
        taken = torch.cuda.memory_reserved() - held
        logger.info("captured in %.2f s, %.1f MB", perf_counter() - began, taken / 1e6)
        return graph
