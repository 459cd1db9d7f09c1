"""Memory that is not there: libraries say so in several ways, here it is one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

from voiceloop.errors import OutOfMemory, tells_of_no_memory


@contextmanager
def memory_for(what: str, hint: str) -> Iterator[None]:
    """Raise OutOfMemory in place of whatever says that there is no memory for `what`."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, torch.OutOfMemoryError) and not tells_of_no_memory(error):
            raise
        raise OutOfMemory(f"{what} does not fit into memory", hint) from error


def memory_for_model(name: str) -> AbstractContextManager[None]:
    """The same for the weights of the model `name`."""
    return memory_for(f"the model '{name}'", "choose a smaller model or dtype")
