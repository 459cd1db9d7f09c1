"""Measures what decoding costs: figures of replies, of the parts of a round, and of the GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from lab.decoding.pair import Pair
from lab.decoding.prediction import compared, floor
from lab.decoding.rounds import Work, profiled
from lab.decoding.steps import read_bandwidth, time_steps
from voiceloop.bench.modes import BenchPrompt, MeasuredReply
from voiceloop.settings.config import LlmConfig


def figures_of(
    pair: Pair,
    prompt: BenchPrompt,
    answers: Mapping[str, Sequence[MeasuredReply]],
    config: LlmConfig,
    price_per_hour: float | None,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Return all figures of `answers`, the replies by mode. `prompt` is one of their prompts.

    Single passes, the memory bandwidth and the work of the GPU are measured during this call.
    """
    progress("timing single passes")
    counts = {one.drafted for answer in answers["speculative"] for one in answer.rounds}
    reply = max((answer.ids for answer in answers["plain"]), key=len)
    costs = time_steps(*pair.decoders, prompt.ids, reply, counts, pair.captured)
    greedy = config.temperature == 0
    found = compared(answers, costs, greedy=greedy, price_per_hour=price_per_hour)
    on_gpu = pair.decoders[0].device.type == "cuda"
    memory = most_memory_mb() if on_gpu else None  # before the measurements below allocate buffers
    progress("reading memory")
    target, draft = (decoder.pass_bytes for decoder in pair.decoders)
    bandwidth = read_bandwidth(target, pair.decoders[0].device)
    return {
        **found,
        "bandwidth": floor(bandwidth, (target, draft), found),
        "gpu": _on_gpu(pair, prompt) | {"most_memory_mb": memory} if pair.captures else None,
    }


def most_memory_mb() -> float:
    """Return the peak GPU memory of tensors, in MB."""
    return round(torch.cuda.max_memory_allocated() / 2**20, 1)


def _on_gpu(pair: Pair, prompt: BenchPrompt) -> dict[str, Any]:
    """Return the work that a round gives the GPU, and the costs of captured graphs."""
    work = profiled_rounds(pair, prompt)
    assert pair.captures is not None, "rounds are captured"
    return {
        "kernels_per_round": round(work.kernels, 1),
        "launches_per_round": round(work.launches, 1),
        "waits_per_round": round(work.waits, 2),
        "attention": list(work.attention),
        "graphs": pair.captures.graphs,
        "graphs_done_plainly": pair.captures.plain,
        "capture_s": round(pair.captures.seconds, 3),
        "capture_mb": round(pair.captures.nbytes / 2**20, 1),
    }


def profiled_rounds(pair: Pair, prompt: BenchPrompt) -> Work:
    """Profile a reply to `prompt`. Return the GPU's work per round, including work between
    rounds."""
    conversation = pair.conversation()
    reply = conversation.reply(prompt.text, 0)
    next(filter(None, reply))  # the first burst comes from the pass over the prompt
    before = conversation.counters.target_passes

    def rounds() -> int:
        deque(reply, maxlen=0)
        return conversation.counters.target_passes - before

    try:
        return profiled(rounds)
    finally:
        conversation.close()
