"""What a round asks of a GPU: kernels, launches, waits; and whether it waits within itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.profiler import ProfilerActivity, profile

from voiceloop.llm.decode.graphs import Graph, Plainly

WAITS = re.compile(r"cuda(Stream|Event|Device)Synchronize|cuda(Memcpy|MemcpyToSymbol)")
"""Calls of the runtime that return once the device has got somewhere."""
LAUNCHES = re.compile(r"cu(da)?(Graph)?Launch(Kernel)?(ExC|Ex)?")
"""Calls that ask for work: a kernel, or a whole graph."""
MOVES = ("Memcpy", "Memset")
"""What stands in the device's queue and is no kernel."""
ATTENTION = re.compile(r"flash|fmha|attention|attn|attended|cudnn.*sdpa|softmax", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Work:
    """What pieces of work asked of the device, each on average."""

    kernels: float
    launches: float
    waits: float
    attention: tuple[str, ...]
    """Kernels that attend, by name, the most frequent first."""


def profiled(work: Callable[[], int]) -> Work:
    """What `work`, which tells how many pieces it was, asks of the GPU."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        pieces = work()
        torch.cuda.synchronize()
    events = ((event.name, event.device_type.name == "CUDA") for event in profiler.events() or ())
    return counted(events, pieces)


def counted(events: Iterable[tuple[str, bool]], pieces: int) -> Work:
    """The `events` of so many pieces of work: what each is called, and whether the device did it.

    The wait that ends a measurement is none of theirs.
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
    """A kernel's name without its template's arguments and namespaces."""
    bare = re.sub(r"^void |<.*|\(.*", "", kernel)
    return bare.rpartition("::")[2] or kernel[:40]


@contextmanager
def without_waits() -> Iterator[None]:
    """Within it torch raises RuntimeError where it would wait for the device."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def strictly(work: Callable[[], None]) -> Graph:
    """A `Capture`: work that is done plainly, and must not wait."""

    def strict() -> None:
        with without_waits():
            work()

    return Plainly(strict)
