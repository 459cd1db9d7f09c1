"""Sets up the process of a command, once, when it starts.

Only commands do this. A program that uses voiceloop as a library sets up its process itself. To get
the same setup, it calls `configure` before it imports torch or onnxruntime.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from voiceloop.threads import bound_threads

T = TypeVar("T")

ENVIRONMENT = {
    # `engines` sets this variable during its imports, but other code may import it earlier.
    "ORT_DISABLE_TELEMETRY": "1",
    # On some GPUs torch prefers cuDNN's attention, which plans anew for each length.
    "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1",
}


def configure(threads: int) -> None:
    """Set environment variables and thread counts for the libraries that compute.

    `threads` is the setting of that name. Variables that the user has set stay.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    bound_threads(threads)


@contextmanager
def settled(opened: AbstractContextManager[T]) -> Iterator[T]:
    """Enter `opened`, and exclude all objects that exist then from garbage collection.

    These objects are many, and they live long. Scanning them would stop all threads for 0.1 s or
    more. After the end of the context they may be collected again.
    """
    with opened as made:
        gc.collect()
        gc.freeze()
        try:
            yield made
        finally:
            gc.unfreeze()
