"""Random numbers of a voice. Equal texts get equal numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class ClauseNoise:
    """The random state of one clause, seeded by its text.

    Libraries draw from torch's global generators. `drawing` sets the generators to this state for
    one step, and restores them afterwards. So other clauses and other code that draws from the
    generators are not affected.
    """

    def __init__(self, text: str, device: torch.device) -> None:
        self._seed = zlib.crc32(text.encode())
        self._cuda = [device] if device.type == "cuda" else []
        self._left: list[torch.Tensor] = []

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Set the random generators for one step of the clause, while the context lasts. The step
        continues from the state in which the clause's last step ended."""
        with torch.random.fork_rng(self._cuda):
            if self._left:
                torch.set_rng_state(self._left[0])
                for device, state in zip(self._cuda, self._left[1:], strict=True):
                    torch.cuda.set_rng_state(state, device)
            else:
                torch.manual_seed(self._seed)
            yield
            self._left = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, self._cuda)]
