"""Finds the device for a model and its memory, and gives threads streams on it.

This module does not know what runs there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from voiceloop.errors import EngineError, OutOfMemory, tells_of_no_memory
from voiceloop.terminal import size

if TYPE_CHECKING:
    import torch

BUILDING = Lock()
"""Held while a torch module is built. Its weights get the default dtype of the whole process, and
transformers changes that default while it builds a model, on any thread."""
USUAL, URGENT = 0, -1
"""Priorities of CUDA streams; the GPU runs the work of the smaller number first."""


def torch_device(
    setting: str, name: str, auto: Sequence[str] = ("cuda", "mps", "cpu")
) -> torch.device:
    """Return the device called `name`, or for `auto` the first of `auto` that this machine has.

    `setting` is the key that gave `name`, for the error. Raises EngineError if there is no such
    device.
    """
    import torch  # slow, and not needed to choose among onnxruntime's devices

    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    return torch.device(chosen_device(setting, name, auto, there))


def own_stream(device: torch.device, priority: int = USUAL) -> None:
    """Give this thread a CUDA stream of its own for all its later work of torch on `device`.

    By default torch puts all work of a process on one stream, so its models wait for each other.
    The streams of CTranslate2 wait for that default stream too. An engine of torch calls this on
    the thread on which it is loaded and will run, before it puts anything on the device. Other
    devices have no streams; there this does nothing.
    """
    if device.type == "cuda":
        import torch

        torch.cuda.set_stream(torch.cuda.Stream(device, priority))


def chosen_device(
    setting: str, name: str, auto: Sequence[str], there: Mapping[str, bool], finder: str = "torch"
) -> str:
    """Return `name`, or for `auto` the first device of `auto` that is `there`.

    Raises EngineError if `name` is not there. The message names `setting`, and `finder` as the
    library that found no such device.
    """
    if name == "auto":
        return next(device for device in auto if there[device])
    if not there[name]:
        raise EngineError(f"{finder} finds no {name} device here", f"set {setting} to cpu or auto")
    return name


def free_memory(device: torch.device) -> int | None:
    """Return the free bytes of a device; None if they are unknown."""
    if device.type == "cuda":
        import torch

        return torch.cuda.mem_get_info(device)[0]
    return available_memory() if device.type == "cpu" else None


def available_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes of memory can be taken without swapping; None outside of Linux.

    The limits of the process's control groups (its container) count, too.
    """
    match = re.search(r"MemAvailable:\s+(\d+) kB", _text(root / "proc/meminfo"))
    if match is None:
        return None
    free = 1024 * int(match[1])
    own = re.search(r"^0::/(.*)$", _text(root / "proc/self/cgroup"), re.MULTILINE)
    groups = root / "sys/fs/cgroup"
    group = groups / own[1] if own else groups
    while group.is_relative_to(groups):
        most, used = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
        # Inactive pages of files count as used, but the kernel drops them first.
        idle = re.search(r"^inactive_file (\d+)$", _text(group / "memory.stat"), re.MULTILINE)
        if most.isdecimal() and used.isdecimal():
            free = min(free, max(0, int(most) - int(used) + (int(idle[1]) if idle else 0)))
        group = group.parent
    return free


def resident_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that this process occupies; None outside of Linux."""
    match = re.search(r"VmRSS:\s+(\d+) kB", _text(root / "proc/self/status"))
    return 1024 * int(match[1]) if match else None


def total_memory() -> int | None:
    """Return the bytes of the machine's memory; None if the system does not report them."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


DRIVERS = ("/proc/driver/nvidia", "/dev/dxg", "/dev/kfd")
"""Paths of which Linux has one if a driver of NVIDIA's, WSL's or AMD's is loaded."""


def gpu_memory() -> int:
    """Return the bytes of memory of the first CUDA GPU; 0 if no GPU works."""
    if sys.platform == "linux" and not any(map(os.path.exists, DRIVERS)):
        return 0  # without torch, whose import takes seconds
    import torch

    return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else 0


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


@contextmanager
def memory_for(what: str, hint: str) -> Iterator[None]:
    """Raise OutOfMemory in place of any error within the context that means too little memory.

    The message says that `what` does not fit; `hint` tells the user what to do.
    """
    try:
        yield
    except Exception as error:
        import torch  # imported only after a failure, since that is slow

        if not isinstance(error, torch.OutOfMemoryError) and not tells_of_no_memory(error):
            raise
        raise OutOfMemory(f"{what} does not fit into memory", hint) from error


def memory_for_model(name: str) -> AbstractContextManager[None]:
    """Raise OutOfMemory, as `memory_for` does, if the weights of the model `name` do not fit."""
    return memory_for(f"the model '{name}'", "choose a smaller model or dtype")


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Something that takes memory, such as a model."""

    name: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.name} {size(self.bytes)}"
