"""The presets from the best to the least: what each is good for, and what it needs of a machine.

`config.PRESETS` says which models they are. This module measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

GB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Preset:
    """What a user is told of a preset before they choose it."""

    name: str
    good_for: str
    cores: int = 1
    """Of the processor; fewer make it slow."""
    memory: int = 0
    """Bytes of the machine's memory."""
    gpu: int = 0
    """Bytes of one GPU's memory; 0: it needs none."""

    @property
    def needs(self) -> str:
        """What it needs, in words."""
        if self.gpu:
            return f"a GPU of {self.gpu // GB} GB"
        if not self.memory:
            return "any machine"
        return f"{self.cores} cores and {self.memory // GB} GB of memory"


BEST_FIRST = (
    Preset("best", "the best answers", gpu=24 * GB),
    Preset("small", "good answers", gpu=8 * GB),
    Preset("laptop", "sensible answers", cores=2, memory=4 * GB),
    Preset("cpu", "fast, often wrong", cores=2, memory=2 * GB),
    Preset("starter", "trying it out: small questions, in synthetic voices"),
)
"""Every preset."""
STARTER = BEST_FIRST[-1]


@dataclass(frozen=True, slots=True)
class Machine:
    """What presets ask of a machine."""

    cores: int
    memory: int | None
    """Bytes; None where the system does not tell."""
    gpu: Callable[[], int]
    """Bytes of its GPU's memory, 0 for none; it takes its time to find out."""

    def carries(self, preset: Preset) -> bool:
        """Whether the preset runs there, be it slowly."""
        fits = self.memory is None or self.memory >= preset.memory
        return fits and (not preset.gpu or self.gpu() >= preset.gpu)

    def recommended(self) -> Iterator[Preset]:
        """The presets that run there well, the best first; the starter is always one."""
        return (one for one in BEST_FIRST if self.cores >= one.cores and self.carries(one))
