"""Where models run: the device that a setting names, or the best that there is; the stream there.

How much memory is free there is told here too. This module does not know what runs there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from voiceloop.errors import EngineError, OutOfMemory, tells_of_no_memory

if TYPE_CHECKING:
    import torch

BUILDING = Lock()
"""Held while modules of torch are built. Their type is that of the whole process by default, and
transformers sets that to the model's own for as long as it builds one, on whatever thread."""
USUAL, URGENT = 0, -1
"""Priorities of CUDA's streams: of what waits for the device the smallest goes first."""


def torch_device(
    setting: str, name: str, auto: Sequence[str] = ("cuda", "mps", "cpu")
) -> torch.device:
    """The device that `setting` names, or for `auto` the first of those that is there.

    Raises EngineError for a device that is not there.
    """
    import torch  # takes long, and is not needed to choose among onnxruntime's devices

    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    return torch.device(chosen_device(setting, name, auto, there))


def own_stream(device: torch.device, priority: int = USUAL) -> None:
    """From now on what this thread asks of torch on `device` waits for nothing but its own.

    Unless it is told otherwise torch puts all work of a process on the one default stream, a model
    behind the other, and CTranslate2's streams wait for that one too. An engine of torch calls this
    before it puts anything on the device, on the thread on which it is loaded and will run. On
    other devices there are no streams.
    """
    if device.type == "cuda":
        import torch

        torch.cuda.set_stream(torch.cuda.Stream(device, priority))


def chosen_device(
    setting: str, name: str, auto: Sequence[str], there: Mapping[str, bool], finder: str = "torch"
) -> str:
    """`name`, or for `auto` the first of those that is `there`.

    Raises EngineError for a device that is not there, which `finder` has looked for.
    """
    if name == "auto":
        return next(device for device in auto if there[device])
    if not there[name]:
        raise EngineError(f"{finder} finds no {name} device here", f"set {setting} to cpu or auto")
    return name


def free_memory(device: torch.device) -> int | None:
    """Bytes that may still be taken there; None where nothing tells."""
    if device.type == "cuda":
        import torch

        return torch.cuda.mem_get_info(device)[0]
    return available_memory() if device.type == "cpu" else None


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes of the machine's memory that may be taken without swapping, within the limit of the
    control group (a container's); None where Linux does not tell."""
    told = re.search(r"MemAvailable:\s+(\d+) kB", _text(root / "proc/meminfo"))
    if told is None:
        return None
    free = 1024 * int(told[1])
    own = re.search(r"^0::/(.*)$", _text(root / "proc/self/cgroup"), re.MULTILINE)
    groups = root / "sys/fs/cgroup"
    group = groups / own[1] if own else groups
    while group.is_relative_to(groups):
        most, used = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
        # Pages of files that nobody has touched for a while are given up first.
        idle = re.search(r"^inactive_file (\d+)$", _text(group / "memory.stat"), re.MULTILINE)
        if most.isdecimal() and used.isdecimal():
            free = min(free, max(0, int(most) - int(used) + (int(idle[1]) if idle else 0)))
        group = group.parent
    return free


def resident_memory(root: Path = Path("/")) -> int | None:
    """Bytes of it that this process has; None where Linux does not tell."""
    told = re.search(r"VmRSS:\s+(\d+) kB", _text(root / "proc/self/status"))
    return 1024 * int(told[1]) if told else None


def total_memory() -> int | None:
    """Bytes of the machine's memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def gpu_memory() -> int:
    """Bytes of the memory of CUDA's GPU; 0 where there is none that works."""
    import torch

    return torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else 0


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


@contextmanager
def memory_for(what: str, hint: str) -> Iterator[None]:
    """Raise OutOfMemory in place of whatever says that there is no memory for `what`."""
    try:
        yield
    except Exception as error:
        import torch  # where something failed

        if not isinstance(error, torch.OutOfMemoryError) and not tells_of_no_memory(error):
            raise
        raise OutOfMemory(f"{what} does not fit into memory", hint) from error


def memory_for_model(name: str) -> AbstractContextManager[None]:
    """The same for the weights of the model `name`."""
    return memory_for(f"the model '{name}'", "choose a smaller model or dtype")
