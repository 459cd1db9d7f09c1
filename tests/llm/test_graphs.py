"""What is asked of CUDA where work is captured; that CUDA does it, `scripts/gpu_check.py` shows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from voiceloop.llm.decode.captured import CudaGraphs, Plainly

pytestmark = pytest.mark.models


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A CUDA that writes down what is asked of it, and captures nothing."""
    asked = SimpleNamespace(captures=[], default="default", current="own", fails=False)

    @contextmanager
    def graph(graph: object, **options: Any) -> Iterator[None]:
        asked.captures.append(options)
        yield
        if asked.fails:
            raise RuntimeError("operation not permitted\nwhen capturing")

    fakes: dict[str, Any] = {
        "graph": graph,
        "CUDAGraph": SimpleNamespace,
        "graph_pool_handle": lambda: ("pool",),
        "current_stream": lambda: asked.current,
        "default_stream": lambda: asked.default,
        "memory_reserved": lambda: 0,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    return asked


def test_all_are_captured_on_the_models_own_stream_with_memory_in_common(cuda: Any) -> None:
    capture, done = CudaGraphs(), []
    graphs = [capture(lambda: done.append(1)) for _ in range(3)]
    assert done == [1, 1, 1] and not any(isinstance(graph, Plainly) for graph in graphs)
    expected = {"pool": ("pool",), "stream": "own", "capture_error_mode": "thread_local"}
    assert cuda.captures == [expected] * 3
    cuda.current = cuda.default  # which cannot capture: torch takes one of its own then
    capture(lambda: None)
    assert cuda.captures[-1]["stream"] is None


def test_what_cannot_be_captured_is_done_plainly_and_told_once(
    cuda: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cuda.fails = True
    capture, done = CudaGraphs(), []
    first, second = (capture(lambda at=at: done.append(at)) for at in (1, 2))
    done.clear()
    for graph in (second, first, second):
        graph.replay()
    assert done == [2, 1, 2]
    told = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == ["rounds are not captured: operation not permitted"]


def test_what_is_wrong_with_the_work_itself_is_raised(cuda: Any) -> None:
    with pytest.raises(ValueError, match="itself"):
        CudaGraphs()(lambda: (_ for _ in ()).throw(ValueError("itself")).__next__())
