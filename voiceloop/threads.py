"""How many threads compute at once, and how long they wait for more: of small work a share of the
cores, of large work all of them.

Models of a conversation work side by side, and what a thread is given in small pieces is soon
waited for by all others: with every core for each of them, they would wait for one another. What a
model does in large pieces it mostly does while the others wait for what comes of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

VARIABLE = "OMP_NUM_THREADS"
SPINS = "30000"
"""How often a thread of GNU's OpenMP that has done its share looks for more before it sleeps: for
1.5 ms on an Intel Xeon, for some tenths elsewhere, and for longer than from one step of a model to
the next. By itself it would look ten times as often, on a core that the next step of a reply may
want."""

_share, _all = 0, 0
"""Threads for small and for large work; 0: what the user has asked for stands."""
_working = 0
"""Models that compute at this moment."""
_counting = Lock()


def available_cores() -> int:
    """Those that this process may use, where the system tells which; else all there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def bound_threads(threads: int) -> None:
    """Bound those of torch, ctranslate2 and onnxruntime, before any of them is imported: `threads`
    for each, or where that is 0 half of the cores for small work.

    Their own defaults take every core each; they stay where this is not called. Where the user has
    set OMP_NUM_THREADS that stays, and so does what is said of waiting.
    """
    global _share, _all
    import numpy as np  # noqa: F401 -- or there would be no pool of its products to bound yet
    from threadpoolctl import ThreadpoolController

    cores = available_cores()
    if VARIABLE not in os.environ:
        _share, _all = threads or max(1, cores // 2), threads or cores
        os.environ[VARIABLE] = str(_share)
        small_work()  # if torch is there already, it has read the variable
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    # numpy's products are small: further threads would only spin until the next one.
    ThreadpoolController().select(internal_api="openblas").limit(limits=1)


def small_work() -> None:
    """What torch computes on this thread from now on is small; only where torch is in use.

    A thread that torch has not met before gets as many as any thread has asked for last: all cores,
    where another is just within `all_cores`.
    """
    if _share and "torch" in sys.modules:
        import torch

        torch.set_num_threads(_share)


@contextmanager
def at_work() -> Iterator[None]:
    """A model computes meanwhile, on this thread."""
    global _working
    with _counting:
        _working += 1
    try:
        yield
    finally:
        with _counting:
            _working -= 1


def free_threads() -> int:
    """How many threads suit a model that computes now: those for large work, less those of the
    other models that compute at this moment.

    It is asked before each pass by those whose threads wait for one another many times in it: where
    two share a core, all wait until the system takes it from one and gives it to the other.
    """
    if not _all:
        return int(os.environ.get(VARIABLE, 0)) or available_cores()
    return left(_share, _all, _working)


def left(share: int, most: int, working: int) -> int:
    """Return how many of `most` threads one of `working` models gets, if each other model keeps
    `share` threads; at least `share`."""
    return max(share, most - share * max(0, working - 1))


@contextmanager
def all_cores() -> Iterator[None]:
    """Let torch use all cores on this thread while the context lasts.

    This pays for passes of many rows.
    """
    import torch

    share = torch.get_num_threads()
    if share >= _all:
        yield
        return
    torch.set_num_threads(_all)
    try:
        yield
    finally:
        torch.set_num_threads(share)
