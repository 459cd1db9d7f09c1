"""What the parts of a round cost on this machine, and how fast it can read weights at all.

Steps are measured as they occur: draft tokens without a wait between them, then one pass of the
target over them, so that each model finds the caches of the processor as the other has left them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from time import perf_counter

import torch

from voiceloop.bench.figures import StepCosts
from voiceloop.llm.cache import KvCache
from voiceloop.llm.decoder import Decoder, feed

REPEATS = 15
SWEEPS = 5
MEMORY = 2**30
"""Bytes to read at least: no processor's cache holds as many."""


@torch.inference_mode()
def time_passes(
    target: Decoder,
    draft: Decoder,
    prompt: Sequence[int],
    reply: Sequence[int],
    drafted: Collection[int],
    repeats: int = REPEATS,
) -> StepCosts:
    """Time rounds of as many draft tokens as `drafted` lists, in mid-reply to `prompt`."""
    middle = [*prompt, *reply[: len(reply) // 2]]
    longest = max(drafted, default=0) + 1
    capacity = len(middle) + longest
    caches = KvCache(capacity), KvCache(capacity)
    for model, cache in zip((target, draft), caches, strict=True):
        _finish(feed(model, cache, middle[:-1]))
    counts = sorted({0, 1, *drafted})
    passes: dict[int, list[float]] = {count + 1: [] for count in counts}
    drafting: list[float] = []
    for _ in range(repeats + 1):
        for count in counts:
            last = torch.tensor(middle[-1:], device=target.device)
            rows = [last]
            began = perf_counter()
            for _ in range(count):
                rows.append(draft.forward(rows[-1], caches[1], 1).argmax(-1))
            _wait(target.device)
            between = perf_counter()
            logits = target.forward(torch.cat(rows), caches[0], count + 1)
            logits.argmax(-1).tolist()
            end = perf_counter()
            passes[count + 1].append(end - between)
            if count:
                drafting.append((between - began) / count)
            for cache in caches:
                cache.rollback(len(middle) - 1)
    prefill: list[float] = []
    for _ in range(repeats):
        caches[1].rollback(0)
        began = perf_counter()
        _finish(feed(draft, caches[1], prompt))
        _wait(target.device)
        prefill.append(perf_counter() - began)
    return StepCosts(
        # The first time warms up.
        {rows: median(seconds[1:]) for rows, seconds in passes.items()},
        median(drafting[len(counts) - 1 :]),
        median(prefill),
    )


def read_bandwidth(size: int, device: torch.device, least: int = MEMORY) -> float:
    """Bytes per second at which torch, with the threads it has, reads `size` bytes of memory.

    At least `least` bytes are read, so that no cache holds them, and at most twice `MEMORY`.
    """
    numbers = min(max(size, least), max(least, 2 * MEMORY)) // 4
    buffer = torch.ones(numbers, device=device)
    seconds: list[float] = []
    for _ in range(SWEEPS + 1):
        began = perf_counter()
        total = buffer.sum().item()
        seconds.append(perf_counter() - began)
        assert math.isfinite(total)
    return 4 * numbers / median(seconds[1:])


def _finish(steps: Iterable[object]) -> None:
    deque(steps, maxlen=0)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
