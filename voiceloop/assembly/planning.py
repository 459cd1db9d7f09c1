"""Checks before loading that the models fit into memory, and proposes a smaller one if not.

The memory of a model is estimated by its engine, from the sizes of the model's files. The sum is
compared with the free memory. Only models that run in this process are counted, and on a CPU also
the process itself. Importing this module imports torch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import torch

from voiceloop.catalog.store import cards
from voiceloop.engines import Kind, configured, module_of
from voiceloop.errors import OutOfMemory
from voiceloop.llm.engine import gguf_bytes
from voiceloop.llm.pair import placement
from voiceloop.placement import MemoryPart, free_memory, resident_memory
from voiceloop.settings.config import Config
from voiceloop.terminal import size

logger = logging.getLogger(__name__)

PROGRAM = 390_000_000
"""Measured bytes of Python, torch and the engines' libraries, with the buffers of small models."""
MARGIN = 0.1
"""Share of the needed memory by which its estimate may be too high. A plan is refused only if it
does not fit even after this share is subtracted."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of one device, and everything that will be loaded there."""

    device: str
    free: int | None
    """Free bytes of the device; None if unknown."""
    parts: tuple[MemoryPart, ...]
    taken: int = 0
    """Bytes of `parts` that this process has taken already. They need not be free."""

    @property
    def needed(self) -> int:
        """Return the estimated bytes of all parts."""
        return sum(part.bytes for part in self.parts)

    @property
    def fits(self) -> bool:
        """Return whether the parts may fit, within the margin; True if `free` is unknown."""
        return self.free is None or (self.needed - self.taken) * (1 - MARGIN) <= self.free

    def __str__(self) -> str:
        free = "" if self.free is None else f", {size(self.free)} free"
        parts = ", ".join(str(part) for part in self.parts if part.bytes)
        return f"needs about {size(self.needed)} on {self.device}{free}: {parts}"


def check_memory(
    config: Config,
    free_on: Callable[[torch.device], int | None] = free_memory,
    *,
    own: Collection[Kind] = (),
) -> MemoryPlan:
    """Return the memory plan of the language model's device, with the other engines on it.

    `free_on` returns the free bytes of a device. Engines of the kinds in `own` are not counted:
    the caller's own classes replace them. Raises OutOfMemory if the plan does not fit; the hint
    names a smaller language model that does, if there is one. Also raises EngineError for a device
    that does not exist, and the errors of `find` for a model that does not exist.
    """
    device, _ = placement(config.llm)
    parts, taken = tuple(_parts(config, device.type, own)), 0
    if device.type == "cpu":
        taken = resident_memory() or 0
        parts = (*parts, MemoryPart("program", max(PROGRAM, taken)))
    plan = MemoryPlan(device.type, free_on(device), parts, taken)
    logger.info("%s", plan)
    if not plan.fits:
        raise OutOfMemory(
            f"this does not fit into memory: {plan}",
            _smaller(plan) or "choose smaller models, or close other programs",
        )
    return plan


def _parts(config: Config, device: str, own: Collection[Kind]) -> Iterator[MemoryPart]:
    """Yield the memory that each configured engine takes on a device of type `device`."""
    for kind, name, settings in configured(config):
        footprint = None if kind in own else getattr(module_of(kind, name), "footprint", None)
        if footprint:
            yield from footprint(settings, device)


def _smaller(plan: MemoryPlan) -> str:
    """Return a hint that names the largest target of the catalogue with which `plan` fits; empty if
    there is none. The draft becomes `auto`, because the present one may not suit another target."""
    models = sum(part.bytes for part in plan.parts if part.name in ("target", "draft"))
    room = (plan.free or 0) - (plan.needed - plan.taken - models)
    takes = gguf_bytes if plan.device == "cpu" else int
    fitting = [card for card in cards() if card.kind == "llm" and takes(card.memory) <= room]
    if not fitting:
        return ""
    largest = max(fitting, key=lambda card: card.memory)
    return f"choose a smaller model: --llm.target {largest.name} --llm.draft auto"
