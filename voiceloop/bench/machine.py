"""Describes the conditions of a measurement: machine, threads, dtype, versions, engines."""

from __future__ import annotations

import os
import platform
import resource
import sys
from importlib.metadata import version
from pathlib import Path

import torch
from transformers import PreTrainedModel

import voiceloop
from voiceloop.config import Config
from voiceloop.llm.model.decoder import Decoder


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
