"""Describes the conditions of a measurement, and keeps them equal for all contestants.

The conditions are machine, threads, dtype, versions and engines. On each item all contestants, such
as modes, work directly one after the other. With each new item, another contestant begins. So a
temporary slowdown of the machine slows down all contestants.
"""

from __future__ import annotations

import math
import os
import platform
import resource
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import torch
from transformers import PreTrainedModel

import voiceloop
from voiceloop.llm.model.decoder import Decoder
from voiceloop.settings.config import Config

T = TypeVar("T")


def describe(model: PreTrainedModel | Decoder) -> dict[str, object]:
    """Describe the machine now, with the device and the dtype of `model`."""
    device = model.device
    return surroundings() | {
        "device": device.type,
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "dtype": str(model.dtype).removeprefix("torch."),
        "transformers": version("transformers"),
    }


def surroundings() -> dict[str, object]:
    """Describe the machine now: its processor, its load, the threads of torch, and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "voiceloop": voiceloop.__version__,
    }


def engines(config: Config) -> dict[str, object]:
    """Return the names of the configured engines, and the limit of tokens for a reply."""
    return {
        "asr": f"{config.asr.engine} {config.asr.model}",
        "target": config.llm.target,
        "draft": config.llm.draft,
        "tts": config.tts.engine,
        "max_new_tokens": config.llm.max_new_tokens,
    }


def most_memory_mb() -> float:
    """Return the peak resident memory of this process, in MB."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round((held if sys.platform == "darwin" else 1024 * held) / 2**20, 1)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def rotation(
    contestants: Sequence[T], times: int, limit_s: float = math.inf
) -> Iterator[tuple[int, list[T]]]:
    """Yield the numbers 0 to `times` - 1, each with all `contestants` in the order of their turns.

    The first number always comes. Another number comes only if it would end within `limit_s`
    seconds of the start, assuming that it takes as long as the longest one so far.
    """
    began, longest = perf_counter(), 0.0
    for number in range(times):
        start = perf_counter()
        if number and start - began + longest > limit_s:
            return
        first = number % len(contestants)
        yield number, [*contestants[first:], *contestants[:first]]
        longest = max(longest, perf_counter() - start)
