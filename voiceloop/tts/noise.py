"""What a model draws for a clause: the same for the same text."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class ClauseNoise:
    """What is drawn for a clause, from torch's global generators: the same for the same text.

    Libraries draw from these. Between the steps of one clause others may be spoken, and whoever
    else draws from them sees nothing of it.
    """

    def __init__(self, text: str, device: torch.device) -> None:
        self._seed = zlib.crc32(text.encode())
        self._cuda = [device] if device.type == "cuda" else []
        self._left: list[torch.Tensor] = []

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Go on where the last step ended."""
        with torch.random.fork_rng(self._cuda):
            if self._left:
                torch.set_rng_state(self._left[0])
                for device, state in zip(self._cuda, self._left[1:], strict=True):
                    torch.cuda.set_rng_state(state, device)
            else:
                torch.manual_seed(self._seed)
            yield
            self._left = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, self._cuda)]
