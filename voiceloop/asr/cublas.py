"""Where CTranslate2 finds cuBLAS: it asks the loader for a library of CUDA 12 by its name.

torch may bring another version, or none, and what pip installs (extra `cuda`) lies where no loader
looks. A library that is loaded already is found by its name, wherever it came from. Each is loaded
for itself, so that torch goes on finding its own. cuDNN is left alone: CTranslate2 needs none, and
torch's, which has the same name for CUDA 12 and 13, must not be another one's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

LIBRARIES = ("libcublasLt.so.12", "libcublas.so.12")
"""In the order in which they need each other."""
FOLDER = "nvidia.cublas.lib"
"""The package of `nvidia-cublas-cu12` that they lie in."""
INSTALL = "pip install nvidia-cublas-cu12"


def wheel_folders() -> Iterable[Path]:
    """Where pip puts the libraries; nowhere where they are not installed."""
    try:
        found = find_spec(FOLDER)
    except ModuleNotFoundError:
        return ()
    return map(Path, found.submodule_search_locations or ()) if found else ()


def load_cublas(
    folders: Callable[[], Iterable[Path]] = wheel_folders,
    load: Callable[[str], object] = ctypes.CDLL,
) -> bool:
    """Load the libraries for whoever asks for them by name; False where they are not to be had."""
    return all(_loaded(name, folders(), load) for name in LIBRARIES)


def _loaded(name: str, folders: Iterable[Path], load: Callable[[str], object]) -> bool:
    """Load one library from the first place that has it, at last where the loader itself looks."""
    for place in (*(str(folder / name) for folder in folders), name):
        try:
            load(place)
        except OSError:
            continue
        return True
    return False
