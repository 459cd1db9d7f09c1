"""Only the work is timed; all numbers of rows are measured, in any room."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.timing import ROOM, ROWS, Stopwatch, row_costs

pytestmark = pytest.mark.models


class Sleeper:
    """A model of no layers, which keeps what passes it was asked for."""

    vocab = parameters = pass_bytes = chunk = 8
    device, dtype = torch.device("cpu"), torch.float32

    def __init__(self) -> None:
        self.passes: list[tuple[int, int]] = []

    def forward(self, ids: Tensor, cache: KvCache, keep: int) -> Tensor:
        assert cache.length + len(ids) <= cache.capacity and keep == len(ids)
        self.passes.append((cache.length, len(ids)))
        cache.advance(len(ids))
        return torch.ones(len(ids), 300) @ torch.ones(300, 8)


@pytest.mark.parametrize("capacity", [2, 6, 40, ROOM])
def test_every_number_of_rows_that_fits_is_measured(capacity: int) -> None:
    model = Sleeper()
    costs = row_costs(model, capacity)
    assert costs[1] == 1 and all(cost > 0 for cost in costs.values())
    assert set(costs) == {rows for rows in ROWS if rows < capacity}
    lengths = [length for length, _ in model.passes]
    assert capacity < ROOM or lengths == sorted(lengths), "nothing is rolled back"


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
