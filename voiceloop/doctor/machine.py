"""Checks of the machine: Python, processor, memory, graphics card, folders, models and port.

Importing this module is quick: torch and CTranslate2 are imported when their checks run.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

import voiceloop
from voiceloop.calibration.idle import cache_folder
from voiceloop.catalog.names import named
from voiceloop.catalog.store import ModelStore
from voiceloop.doctor.examine import Case
from voiceloop.doctor.findings import Finding
from voiceloop.errors import ConfigError, DeviceError
from voiceloop.placement import available_memory
from voiceloop.process import available_cores
from voiceloop.server.port import Binding, check_port
from voiceloop.settings.config import Config
from voiceloop.settings.files import config_files, user_file
from voiceloop.terminal import size

TRIED = "Linux"
"""The system on which voiceloop is developed and tested."""
PROBE_BYTES = 1 << 20
"""Number of bytes that are written to a folder as a test. The file has no name and is deleted at
once."""


def python(case: Case) -> Iterator[Finding]:
    """Report the versions of voiceloop and Python, and the system."""
    del case
    system = platform.system()
    text = (
        f"voiceloop {voiceloop.__version__}, Python {platform.python_version()}, "
        f"{system} {platform.machine()}, installed in {sys.prefix}"
    )
    if system == TRIED:
        yield Finding("python", "ok", text)
    else:
        cure = "docs/install.md tells what is known to work there"
        yield Finding("python", "warning", f"{text}: voiceloop is tried on {TRIED} alone", cure)


def processor(case: Case) -> Iterator[Finding]:
    """Report how many cores this process may use, which vector instructions torch uses, and
    whether llama.cpp could use more than it does."""
    del case
    import torch

    from voiceloop.llm.gguf.libllama import COMPILED, find_library, library

    cores, path = available_cores(), find_library()
    capability = torch.backends.cpu.get_cpu_capability()
    plain, cure = capability == "DEFAULT", ""
    if cores == 1:
        cure = "one is too few to listen, think and speak at once: give voiceloop two"
    elif plain and platform.machine() in ("x86_64", "AMD64"):
        cure = "models are slow there: use a processor with AVX2, or the starter models"
    text = f"{cores} core{'s' * (cores != 1)}, {'no vector instructions' if plain else capability}"
    yield Finding("processor", "warning" if cure else "ok", text, cure, {"cores": cores})
    if path and torch.cuda.is_available() and not library().llama_supports_gpu_offload():
        cure = "compile llama.cpp for the GPU: docs/install.md"
        yield Finding("llama.cpp", "warning", "GGUF models run on the processor alone", cure)
    elif path and path.parent != COMPILED and capability == "AVX512":
        text = "as packaged, for AVX2; compiled here it would read a third faster (docs/install.md)"
        yield Finding("llama.cpp", "ok", text)


def memory(case: Case) -> Iterator[Finding]:
    """Report the free memory. If the configured models are all present, also report whether they
    fit."""
    free = available_memory()
    figures = {} if free is None else {"bytes": float(free)}
    text = "this system does not tell" if free is None else f"{size(free)} free"
    if case.config.llm.engine == "speculative" and not case.absent("asr", "llm", "piper", "kokoro"):
        from voiceloop.assembly.planning import check_memory

        plan = check_memory(case.config)
        text += f"; about {size(plan.needed)} needed on {plan.device}"
    yield Finding("memory", "ok", text, figures=figures)


@dataclass(frozen=True, slots=True)
class Graphics:
    """The graphics cards that torch and CTranslate2 find."""

    names: tuple[str, ...]
    """Names of the CUDA devices that torch sees."""
    bytes: int
    """Memory of the largest CUDA device, in bytes; 0 without CUDA devices."""
    torch_for_cuda: bool
    """True if torch was built for CUDA."""
    nvidia: bool
    """True if CTranslate2 finds an NVIDIA GPU, the only kind that it can use."""
    cublas: bool
    """True if CTranslate2 finds cuBLAS, its library for matrix products."""
    apple: bool
    """True if torch can use Apple's GPU."""


def graphics(case: Case) -> Iterator[Finding]:
    """Report which GPU torch and CTranslate2 can use, and why they cannot use one that is
    present."""
    import torch

    from voiceloop.asr.whisper_model import load_cublas, whisper_device

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    cards = [torch.cuda.get_device_properties(place) for place in range(count)]
    if count:
        torch.ones(8, device="cuda").sum().item()  # fails here if the driver does not fit
    counted = whisper_device("auto") == "cuda"
    seen = Graphics(
        tuple(card.name for card in cards),
        max((card.total_memory for card in cards), default=0),
        torch.version.cuda is not None,
        counted,
        counted and load_cublas(),
        torch.backends.mps.is_available(),
    )
    yield graphics_found(seen, case.config)


def graphics_found(seen: Graphics, config: Config) -> Finding:
    """Return the finding for the graphics cards in `seen`."""
    from voiceloop.asr.whisper_model import INSTALL

    cure, needed = "", False
    if seen.nvidia and not seen.names:
        what = "does not see it" if seen.torch_for_cuda else "is a build without CUDA"
        text = f"there is a GPU of NVIDIA's, and torch {what}: the language model runs on the CPU"
        cure = "update the driver" if seen.torch_for_cuda else "install torch for CUDA: pytorch.org"
        needed = config.llm.device == "cuda"
    elif seen.names:
        text = f"{', '.join(seen.names)}, {size(seen.bytes)}"
        if seen.nvidia and not seen.cublas:
            text += ": CTranslate2 does not find cuBLAS 12, so recognition runs on the CPU"
            cure, needed = INSTALL, config.asr.device == "cuda"
    elif seen.apple:
        text = "Apple's GPU, for the language model"
    else:
        text = "no GPU that can be used: everything runs on the CPU"
    figures = {"bytes": float(seen.bytes)} if seen.names else {}
    mark = "ok" if not cure else "broken" if needed else "warning"
    return Finding("graphics", mark, text, cure, figures)


def configuration(case: Case) -> Iterator[Finding]:
    """Report whether the settings files can be read, and which ones apply."""
    if case.refused:
        raise ConfigError(*case.refused)
    files = ", ".join(str(file) for file in config_files(case.file))
    text = files or f"no file of settings; {user_file()} would be read"
    yield Finding("configuration", "ok", f"{text}; preset {case.config.preset}")


def disk(case: Case) -> Iterator[Finding]:
    """Report whether the folders of models and calibrations are writable, and their free space."""
    del case
    for what, folder in (("models", ModelStore().root), ("cache", cache_folder())):
        yield of_folder(what, folder)


def of_folder(what: str, folder: Path) -> Finding:
    """Return the finding for `folder`. `what` names its contents, e.g. `models`. If the folder does
    not exist, its nearest parent that exists is tested."""
    try:
        there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        free = shutil.disk_usage(there).free
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        cure = "check its permissions and its disk"
        if what == "models":
            cure += ", or name another folder in VOICELOOP_MODELS"
        why = f"nothing can be written to {folder}: {error.strerror}"
        return Finding(f"{what} folder", "warning", why, cure)
    return Finding(f"{what} folder", "ok", f"{folder}, {size(free)} free")


def models(case: Case) -> Iterator[Finding]:
    """Report whether the downloaded models are whole. The checks of the stages report missing
    ones."""
    yield of_store(ModelStore(), {name for _, name in named(case.config).values()})


def of_store(store: ModelStore, used: Set[str]) -> Finding:
    """Return the finding for the models of `store`, judged by the sizes of their files. If a
    damaged model is in `used`, it is `broken`, else a warning."""
    here = store.models()
    lost = [model.name for model in here if not store.find(model.name, model.origin)]
    damaged = [f"{folder} (its record cannot be read)" for folder in store.unreadable()] + lost
    if damaged:
        mark = "broken" if used & {*lost} else "warning"
        text = f"damaged in {store.root}: {', '.join(damaged)}"
        cure = "pull them again with voiceloop models pull, or remove them with models rm"
        return Finding("models", mark, text, cure)
    total = size(sum(model.bytes for model in here))
    text = f"{len(here)} pulled, {total}, whole by their sizes" if here else "none pulled"
    return Finding("models", "ok", f"{text}; the starter's come with voiceloop")


def port(case: Case) -> Iterator[Finding]:
    """Report whether the server could listen on its default port."""
    del case
    yield of_port(Binding())


def of_port(binding: Binding) -> Finding:
    """Return the finding for the port of `binding`."""
    try:
        check_port(binding)
    except DeviceError as error:
        return Finding("port", "warning", error.message, error.hint)
    return Finding("port", "ok", f"{binding.port} is free for voiceloop serve")
