"""Before anything is loaded: does it fit into memory, and if not, what would?

Adds up what the engines say that they take and looks up how much is free; the arithmetic is
`memoryplan`'s. Only models that run in this process are counted, and on a CPU the process itself.
What computing takes there was measured. Importing this imports torch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import torch

from voiceloop.config import Config
from voiceloop.engines import configured, module_of
from voiceloop.errors import OutOfMemory
from voiceloop.llm.memory import Models
from voiceloop.memoryplan import MemoryPart, MemoryPlan, PlanChange
from voiceloop.placement import free_memory, resident_memory

logger = logging.getLogger(__name__)

PROGRAM = 390_000_000
"""Bytes that Python, torch and the engines' libraries take, with what small models compute in, as
measured."""


def check_memory(
    config: Config, free_on: Callable[[torch.device], int | None] = free_memory
) -> MemoryPlan:
    """What a language model in this process needs, and all that is beside it on its device.

    Raises OutOfMemory, with what to choose instead, where that is more than is free, and what
    `Models.of` raises.
    """
    models = Models.of(config.llm)
    device = models.device
    beside = tuple(_beside(config, device.type))
    taken = 0
    if device.type == "cpu":
        taken = resident_memory() or 0
        beside = (MemoryPart("program", max(PROGRAM, taken)), *beside)
    plan = MemoryPlan(device.type, free_on(device), (*models.parts(), *beside), taken)
    logger.info("%s", plan)
    if not plan.fits:
        changes = (PlanChange(one.hint, (*one.parts, *beside)) for one in models.changes())
        raise OutOfMemory(
            f"this does not fit into memory: {plan}",
            plan.instead(changes) or "choose smaller models, or close other programs",
        )
    return plan


def _beside(config: Config, device: str) -> Iterator[MemoryPart]:
    """What the other engines say that they take on a device of that type."""
    for kind, name, settings in configured(config):
        footprint = getattr(module_of(kind, name), "footprint", None)
        if footprint:
            yield from footprint(settings, device)
