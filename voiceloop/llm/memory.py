"""Memory that is not there: torch says so in several ways, here it is one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

from voiceloop.errors import OutOfMemory

_SIGNS = (
    *("allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED"),
    *("bad_alloc", "failed to map segment", "mmap"),
)
"""What errors without a type of their own say: of the CPU's allocator, of Metal, of cuBLAS, of a
library that finds no room for itself or for a file."""


@contextmanager
def memory_for(what: str, hint: str) -> Iterator[None]:
    """Raise OutOfMemory in place of whatever says that there is no memory for `what`."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError, ImportError) as error:
        typed = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not typed and not any(sign in str(error) for sign in _SIGNS):
            raise
        raise OutOfMemory(f"{what} does not fit into memory", hint) from error


def memory_for_model(name: str) -> AbstractContextManager[None]:
    """The same for the weights of the model `name`."""
    return memory_for(f"the model '{name}'", "choose a smaller model or dtype")
