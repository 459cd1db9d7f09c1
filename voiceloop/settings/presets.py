"""The presets, the best first: their settings, what each is good for, and which machine it needs.

`presets.toml` lists them. This module measures nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

GB = 1_000_000_000
BEST_PULLED = "best pulled, for talk and serve"
"""Origin of the setting `preset`, as shown to users, if `best_pulled` chose it."""


@dataclass(frozen=True, slots=True)
class Preset:
    """The description, the requirements and the settings of a preset."""

    name: str
    good_for: str
    cores: int = 1
    """Number of processor cores. With fewer cores the preset runs, but slowly."""
    memory_gb: int = 0
    """Minimum memory of the machine, in GB."""
    gpu_gb: int = 0
    """Minimum memory of one GPU, in GB; 0 if it needs no GPU."""
    settings: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    """Its settings by dotted key."""

    def better(self, than: str) -> bool:
        """Return whether this preset is better than the preset called `than`."""
        names = [one.name for one in BEST_FIRST]
        return names.index(self.name) < names.index(than)

    @property
    def needs(self) -> str:
        """Return the requirements in words."""
        if self.gpu_gb:
            return f"a GPU of {self.gpu_gb} GB"
        if not self.memory_gb:
            return "any machine"
        return f"{self.cores} cores and {self.memory_gb} GB of memory"


_TEXT = (files("voiceloop.settings") / "presets.toml").read_text(encoding="utf-8")
BEST_FIRST = tuple(Preset(**table) for table in tomllib.loads(_TEXT)["preset"])
"""All presets, the best first. The language model of an untried one was chosen by its makers'
figures, and has not answered in voiceloop yet; `lab/everyday` asks them."""
STARTER = BEST_FIRST[-1]
PRESETS = {one.name: one.settings for one in BEST_FIRST}
"""The settings of each preset, by dotted key."""


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
        fits = self.memory is None or self.memory >= preset.memory_gb * GB
        return fits and (not preset.gpu_gb or self.gpu() >= preset.gpu_gb * GB)

    def recommended(self) -> Iterator[Preset]:
        """Return the presets that run well on this machine, the best first, the starter last."""
        return (one for one in BEST_FIRST if self.cores >= one.cores and self.carries(one))

    def suggested(self, below: str | None = None) -> Preset:
        """Return the preset that suits this machine: the best that runs well, and is smaller than
        the preset `below` if that is given."""
        recommended = (one for one in self.recommended() if one.name != below)
        return next((one for one in recommended if not (below and one.better(below))), STARTER)
