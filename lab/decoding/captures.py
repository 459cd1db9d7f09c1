"""What was captured, and what that cost."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch

from voiceloop.llm.decode.graphs import Capture, Graph, Plainly


class Captures:
    """Captures as another does, and keeps count."""

    def __init__(self, capture: Capture) -> None:
        self.graphs = 0
        self.plain = 0
        """Of these, how many could not be captured, and are done plainly."""
        self.replays = 0
        self.seconds = 0.0
        """That capturing took, without the work's first time."""
        self.nbytes = 0
        """Of the device's memory that it took."""
        self._capture = capture

    def __call__(self, work: Callable[[], None]) -> Graph:
        """See `Capture`."""
        held = reserved()  # without what capturing gives back before it begins
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
        """See `Graph.replay`."""
        self._captures.replays += 1
        self._graph.replay()


def reserved() -> int:
    """Bytes of the GPU's memory that torch needs to hold; 0 where there is none."""
    if not torch.cuda.is_available():
        return 0
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()
