"""Counts the kernels, launches and waits of rounds on a GPU, and forbids waits within a round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

from voiceloop.llm.decode.captured import Graph, Plainly

WAITS = re.compile(r"cuda(Stream|Event|Device)Synchronize|cuda(Memcpy|MemcpyToSymbol)")
"""Matches calls of the CUDA runtime that wait for the device."""
LAUNCHES = re.compile(r"cu(da)?(Graph)?Launch(Kernel)?(ExC|Ex)?")
"""Matches calls that launch a kernel or a whole graph."""
MOVES = ("Memcpy", "Memset")
"""Device events whose names begin with these words are no kernels."""
ATTENTION = re.compile(r"flash|fmha|attention|attn|attended|cudnn.*sdpa|softmax", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Work:
    """Mean numbers of kernels, launches and waits per piece of work, for example per round."""

    kernels: float
    launches: float
    waits: float
    attention: tuple[str, ...]
    """Names of the attention kernels, the most frequent first."""


def profiled(work: Callable[[], int]) -> Work:
    """Run and profile `work`, which returns the number of its pieces."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        pieces = work()
        torch.cuda.synchronize()
    events = ((event.name, event.device_type.name == "CUDA") for event in profiler.events() or ())
    return counted(events, pieces)


def counted(events: Iterable[tuple[str, bool]], pieces: int) -> Work:
    """Count the `events` of a profile, and divide by the number of `pieces`.

    An event is its name, and whether it happened on the device. The wait that ends the profile is
    not counted.
    """
    kernels, launches, waits = 0, 0, -1
    attention: Counter[str] = Counter()
    for name, on_device in events:
        if on_device:
            kernels += not name.startswith(MOVES)
            if ATTENTION.search(name):
                attention[name] += 1
        else:
            launches += bool(LAUNCHES.fullmatch(name))
            waits += bool(WAITS.fullmatch(name))
    pieces = max(1, pieces)
    names = tuple(_short(name) for name, _ in attention.most_common())
    return Work(kernels / pieces, launches / pieces, max(0, waits) / pieces, names)


def _short(kernel: str) -> str:
    """Return a kernel's name without template arguments and namespaces."""
    bare = re.sub(r"^void |<.*|\(.*", "", kernel)
    return bare.rpartition("::")[2] or kernel[:40]


@contextmanager
def without_waits() -> Iterator[None]:
    """Make torch raise RuntimeError, while the context lasts, if it would wait for the device."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def strictly(work: Callable[[], None]) -> Graph:
    """Return a graph that runs `work` uncaptured and raises if it waits. This is a `Capture`."""

    def strict() -> None:
        with without_waits():
            work()

    return Plainly(strict)
