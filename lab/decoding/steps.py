"""Times the parts of a round on this machine, and measures its memory bandwidth.

Steps are timed as they occur in rounds: draft tokens without a wait between them, then one pass of
the target over them. So each model finds the caches of the processor as the other has left them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from time import perf_counter

import torch

from lab.decoding.prediction import StepCosts
from voiceloop.llm.decode.captured import MOST, Captured, Round
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import CausalModel, feed

REPEATS = 15
SWEEPS = 5
MEMORY = 2**30
"""Minimum number of bytes to read: more than the cache of any processor holds."""


@torch.inference_mode()
def time_steps(
    target: CausalModel,
    draft: CausalModel,
    prompt: Sequence[int],
    reply: Sequence[int],
    drafted: Collection[int],
    captured: Captured | None = None,
) -> StepCosts:
    """Time rounds in the middle of `reply`, for each number of draft tokens in `drafted`.

    With `captured`, the rounds are captured ones.
    """
    middle = [*prompt, *reply[: len(reply) // 2]]
    counts = sorted({0, 1, *drafted})
    if captured is None:
        passes, drafting = _time_passes(target, draft, middle, counts)
    else:
        passes, drafting = _time_rounds(captured, middle, counts)
    prefill: list[float] = []
    cache = KvCache(len(prompt))
    for _ in range(REPEATS):
        cache.rollback(0)
        began = perf_counter()
        _finish(feed(draft, cache, prompt))
        wait(target.device)
        prefill.append(perf_counter() - began)
    # The first measurement is a warm-up.
    return StepCosts(
        {count + 1: median(passes[count][1:]) for count in counts},
        median(time for count in counts for time in drafting[count][1:]),
        median(prefill),
    )


Times = dict[int, list[float]]
"""Seconds, by the number of draft tokens."""


def _time_passes(
    target: CausalModel, draft: CausalModel, middle: Sequence[int], counts: Sequence[int]
) -> tuple[Times, Times]:
    """Time the passes of the target, and for each draft token the pass of the draft."""
    capacity = len(middle) + counts[-1] + 1
    caches = KvCache(capacity), KvCache(capacity)
    for model, cache in zip((target, draft), caches, strict=True):
        _finish(feed(model, cache, middle[:-1]))
    passes: Times = {count: [] for count in counts}
    drafting: Times = {count: [] for count in counts}
    for _ in range(REPEATS + 1):
        for count in counts:
            last = torch.tensor(middle[-1:], device=target.device)
            rows = [last]
            began = perf_counter()
            for _ in range(count):
                rows.append(draft.forward(rows[-1], caches[1], 1).argmax(-1))
            wait(target.device)
            between = perf_counter()
            logits = target.forward(torch.cat(rows), caches[0], count + 1)
            logits.argmax(-1).tolist()
            end = perf_counter()
            passes[count].append(end - between)
            if count:
                drafting[count].append((between - began) / count)
            for cache in caches:
                cache.rollback(len(middle) - 1)
    return passes, drafting


def _time_rounds(
    captured: Captured, middle: Sequence[int], counts: Sequence[int]
) -> tuple[Times, Times]:
    """Time the parts of captured rounds. They run in the spare slots, whose contents take as long
    to read as any others."""
    work = captured.work
    assert work.draft_model is not None
    slots = work.target.slots.spare, work.draft_model.slots.spare
    nothing = [0] * (MOST + 1)
    round_ = Round(slots, len(middle), 1, (middle[-2], middle[-1]), nothing)
    passes: Times = {count: [] for count in counts}
    drafting: Times = {count: [] for count in counts}
    for _ in range(REPEATS + 1):
        for count in counts:
            captured.begin(round_, count)
            wait(work.target.decoder.device)
            began = perf_counter()
            if count:
                captured.draft(count)
                wait(work.target.decoder.device)
            between = perf_counter()
            captured.verify(count)
            wait(work.target.decoder.device)
            passes[count].append(perf_counter() - between)
            if count:
                drafting[count].append((between - began) / count)
    return passes, drafting


def read_bandwidth(size: int, device: torch.device, least: int = MEMORY) -> float:
    """Return the bytes per second at which torch, with its threads, reads `size` bytes of memory.

    At least `least` bytes are read, so that no cache holds them, and at most twice `MEMORY`. On
    CUDA the bytes are copied, and count twice: as read and as written.
    """
    numbers = min(max(size, least), max(least, 2 * MEMORY)) // 4
    buffer = torch.ones(numbers, device=device)
    copies = device.type == "cuda"
    copied = torch.empty_like(buffer) if copies else buffer
    seconds: list[float] = []
    for _ in range(SWEEPS + 1):
        wait(device)
        began = perf_counter()
        if copies:
            copied.copy_(buffer)
            wait(device)
        else:
            assert math.isfinite(buffer.sum().item())
        seconds.append(perf_counter() - began)
    return (2 if copies else 1) * 4 * numbers / median(seconds[1:])


def _finish(steps: Iterable[object]) -> None:
    deque(steps, maxlen=0)


def wait(device: torch.device) -> None:
    """Wait until a CUDA device has done all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
