"""How many threads compute at once: of small work a share of the cores, of large work all of them.

Models of a conversation work side by side, and what a thread is given in small pieces is soon
waited for by all others: with every core for each of them, they would wait for one another. What a
model does in large pieces it mostly does while the others wait for what comes of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "OMP_NUM_THREADS"

_all = 1
"""Threads for large work."""


def bound_threads(threads: int) -> None:
    """Bound those of torch, ctranslate2 and onnxruntime, before any of them is imported: `threads`
    for each, or where that is 0 half of the cores for small work.

    Their own defaults take every core each. Where the user has set OMP_NUM_THREADS that stays.
    """
    global _all
    from threadpoolctl import (
        ThreadpoolController,
    )  # where only passes are measured, it may be missing

    cores = os.cpu_count() or 1
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(threads or max(1, cores // 2))
        _all = threads or cores
    # numpy's products are small: further threads would only spin until the next one.
    ThreadpoolController().select(internal_api="openblas").limit(limits=1)


@contextmanager
def all_cores() -> Iterator[None]:
    """What torch computes meanwhile, on this thread, is large."""
    import torch

    share = torch.get_num_threads()
    torch.set_num_threads(max(share, _all))
    try:
        yield
    finally:
        torch.set_num_threads(share)
