"""Measures what passes of a model over several rows cost, compared with a pass over one.

It is no line: the kernels of a processor work on groups of rows, so four rows may cost less than
three, and five as much as eight. And it is different for each model, library and processor.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import CausalModel
from voiceloop.llm.model.stopwatch import Stopwatch

ROWS = (1, 4, 2, 3, 5, 8, 9, 12, 13, 16, 17)
"""The numbers of rows that are measured, the most important ones first."""
TIMES = 3
"""Number of passes for each number of rows. The shortest counts: others were disturbed."""
ROOM = 1 + TIMES * sum(ROWS)
"""The number of rows of all passes together, with a first one that is not measured."""
LIMIT_S = 1.0
"""Time limit of all passes together, in seconds. The last pass may exceed it."""


@torch.inference_mode()
def row_costs(model: CausalModel, capacity: int) -> Mapping[int, float]:
    """Return the time of a pass for each number of rows that was measured, relative to a pass over
    one row. All rows of a pass give logits, as in a round of speculative decoding. `capacity` is
    the maximum length of a sequence in tokens, two or more."""
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
