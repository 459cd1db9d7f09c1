"""Counts captured graphs, and measures what capturing costs."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch

from voiceloop.llm.decode.captured import Capture, Graph, Plainly


class Captures:
    """A `Capture` that lets another one capture the work, and counts graphs, replays and costs."""

    def __init__(self, capture: Capture) -> None:
        self.graphs = 0
        self.plain = 0
        """Number of `graphs` that could not be captured. They run as single operations."""
        self.replays = 0
        self.seconds = 0.0
        """Time that capturing took, without the first run of the work."""
        self.nbytes = 0
        """Bytes of GPU memory that capturing took."""
        self._capture = capture

    def __call__(self, work: Callable[[], None]) -> Graph:
        """Capture `work`, and count it."""
        held = reserved()  # without the cached memory that capturing frees before it begins
        began = perf_counter()
        graph = self._capture(work)
        self.seconds += perf_counter() - began
        self.nbytes += reserved() - held
        self.graphs += 1
        self.plain += isinstance(graph, Plainly)
        return _Counted(graph, self)


class _Counted:
    def __init__(self, graph: Graph, captures: Captures) -> None:
        self._graph = graph
        self._captures = captures

    def replay(self) -> None:
        """Replay the graph, and count it."""
        self._captures.replays += 1
        self._graph.replay()


def reserved() -> int:
    """Free torch's cached GPU memory. Return the bytes that it still holds; 0 without a GPU."""
    if not torch.cuda.is_available():
        return 0
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()
