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
"""Makes a graph of work, which must have run once before. The work reads and writes tensors at
fixed addresses, reads nothing back from the device, and is the same each time."""


class Plainly:
    """A graph that runs its work without capturing it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def replay(self) -> None:
        self._work()


class CudaGraphs:
    """Captures work as CUDA graphs, on the stream and thread that call it.

    All graphs share one pool of memory: they are replayed one after the other and keep nothing in
    it between replays.
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
        torch.cuda.empty_cache()  # capturing does so too, which would make `taken` negative
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
