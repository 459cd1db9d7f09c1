"""Random draws of a voice, which are the same for the same text."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class ClauseNoise:
    """The random state of one clause, seeded by its text, in torch's global generators.

    Libraries draw from these generators. Other clauses may be spoken between the steps of this one;
    they and all others who draw from the generators are not affected.
    """

    def __init__(self, text: str, device: torch.device) -> None:
        self._seed = zlib.crc32(text.encode())
        self._cuda = [device] if device.type == "cuda" else []
        self._left: list[torch.Tensor] = []

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Continue the draws of the last step, while the context lasts."""
        with torch.random.fork_rng(self._cuda):
            if self._left:
                torch.set_rng_state(self._left[0])
                for device, state in zip(self._cuda, self._left[1:], strict=True):
                    torch.cuda.set_rng_state(state, device)
            else:
                torch.manual_seed(self._seed)
            yield
            self._left = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, self._cuda)]
