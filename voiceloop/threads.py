"""Sets how many threads compute: a share of the cores for small work, all cores for large work.

The models of a conversation compute at the same time, mostly in small pieces whose threads wait for
each other. If each model used every core, they would hold each other up. Large pieces mostly come
while the other models wait for the result, so they get all cores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

VARIABLE = "OMP_NUM_THREADS"
SPINS = "30000"
"""Number of times that an idle thread of GNU's OpenMP looks for work before it sleeps.

That takes 1.5 ms on an Intel Xeon and some tenths of a millisecond elsewhere, longer than the time
between two steps of a model. The default is ten times that number, and would block a core that the
next step may need.
"""

_share, _all = 0, 0
"""Threads for small work and for large work. Both are 0 before `bound_threads`, and if the user has
set `OMP_NUM_THREADS`."""
_working = 0
"""Number of models that compute at this moment."""
_counting = Lock()


def available_cores() -> int:
    """Return the number of cores that this process may use, or of all cores if unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def bound_threads(threads: int) -> None:
    """Limit the threads of torch, ctranslate2 and onnxruntime before any of them is imported.

    Each library gets `threads` threads. If `threads` is 0, each gets half of the cores, and large
    work of torch and llama.cpp may take all cores. Without this call each library would take every
    core. If the user has set OMP_NUM_THREADS or OMP_WAIT_POLICY, that value stays.
    """
    global _share, _all
    import numpy as np  # noqa: F401 -- loads OpenBLAS, whose pool is limited below
    from threadpoolctl import ThreadpoolController

    cores = available_cores()
    if VARIABLE not in os.environ:
        _share, _all = threads or max(1, cores // 2), threads or cores
        os.environ[VARIABLE] = str(_share)
        small_work()  # a torch imported earlier has read the old value
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    # Matrix products of numpy are small here: more threads would only spin between them.
    ThreadpoolController().select(internal_api="openblas").limit(limits=1)


def small_work() -> None:
    """Let torch use only the share for small work on this thread from now on, if it is imported.

    By default torch on a new thread takes the number that any thread has set last. That would be
    all cores while another thread is in `all_cores`.
    """
    if _share and "torch" in sys.modules:
        import torch

        torch.set_num_threads(_share)


@contextmanager
def at_work() -> Iterator[None]:
    """Count a model as computing while the context lasts."""
    global _working
    with _counting:
        _working += 1
    try:
        yield
    finally:
        with _counting:
            _working -= 1


def free_threads() -> int:
    """Return how many threads a model should use now: the number for large work minus the threads
    of the other models that compute at this moment.

    A model whose threads wait for each other many times in a pass calls this before each pass. If
    two of them shared a core, all would wait until the system switches between the two.
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

    Passes of many rows gain by it.
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
