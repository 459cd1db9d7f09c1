"""Lists the presets, the best first: what each is good for, and which machine it needs.

`config.PRESETS` has their models. This module measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

GB = 1_000_000_000
BEST_PULLED = "best pulled, for talk and serve"
"""Origin of the setting `preset`, as shown to users, if `best_pulled` chose it."""


@dataclass(frozen=True, slots=True)
class Preset:
    """The description and the requirements of a preset."""

    name: str
    good_for: str
    cores: int = 1
    """Number of processor cores. With fewer cores the preset runs, but slowly."""
    memory: int = 0
    """Minimum memory of the machine, in bytes."""
    gpu: int = 0
    """Minimum memory of one GPU, in bytes; 0 if it needs no GPU."""

    def better(self, than: str) -> bool:
        """Return whether this preset is better than the preset called `than`."""
        names = [one.name for one in BEST_FIRST]
        return names.index(self.name) < names.index(than)

    @property
    def needs(self) -> str:
        """Return the requirements in words."""
        if self.gpu:
            return f"a GPU of {self.gpu // GB} GB"
        if not self.memory:
            return "any machine"
        return f"{self.cores} cores and {self.memory // GB} GB of memory"


BEST_FIRST = (
    Preset("best", "the best answers (untried)", gpu=24 * GB),
    Preset("small", "good answers (untried)", gpu=8 * GB),
    Preset("desktop", "good answers (untried)", cores=6, memory=8 * GB),
    Preset("laptop", "sensible answers", cores=2, memory=4 * GB),
    Preset("cpu", "short answers (untried)", cores=2, memory=3 * GB),
    Preset("mini", "a quick try, often wrong", cores=2, memory=2 * GB),
    Preset("starter", "trying it out: small questions, in synthetic voices"),
)
"""All presets, the best first. The language model of an untried one was chosen by its makers'
figures, and has not answered in voiceloop yet; `lab/everyday` asks them."""
STARTER = BEST_FIRST[-1]


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties of a machine that decide which presets run on it."""

    cores: int
    memory: int | None
    """Memory in bytes; None if the system does not report it."""
    gpu: Callable[[], int]
    """A slow function that returns the bytes of the GPU's memory; 0 without a GPU."""

    def carries(self, preset: Preset) -> bool:
        """Return whether the preset runs on this machine, even if slowly."""
        fits = self.memory is None or self.memory >= preset.memory
        return fits and (not preset.gpu or self.gpu() >= preset.gpu)

    def recommended(self) -> Iterator[Preset]:
        """Return the presets that run well on this machine, the best first, the starter last."""
        return (one for one in BEST_FIRST if self.cores >= one.cores and self.carries(one))

    def suggested(self, below: str | None = None) -> Preset:
        """Return the preset that suits this machine: the best that runs well, and is smaller than
        the preset `below` if that is given."""
        recommended = (one for one in self.recommended() if one.name != below)
        return next((one for one in recommended if not (below and one.better(below))), STARTER)
