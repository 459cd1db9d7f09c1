"""What a command sets for its whole process, once, as it starts.

Nobody else sets any of it: a program that has voiceloop within it decides for itself, and calls
`configure` before it imports torch or onnxruntime if it wants what the commands have.
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
    # From 1.29 on ONNX Runtime reports its use to its makers unless it is told not to beforehand.
    "ORT_DISABLE_TELEMETRY": "1",
    # cuDNN's attention, which torch prefers on some GPUs, plans anew for each length.
    "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1",
}


def configure(threads: int) -> None:
    """Tell the libraries that compute how to; `threads` is the setting. What the user has set in
    the environment stays."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    bound_threads(threads)


@contextmanager
def settled(opened: AbstractContextManager[T]) -> Iterator[T]:
    """What `opened` gives, whose many objects stay: Python no longer looks through them for
    garbage, which would stop everything for 0.1 s and more."""
    with opened as made:
        gc.collect()
        gc.freeze()
        try:
            yield made
        finally:
            gc.unfreeze()
