"""Checks before loading that the models fit into memory, and proposes smaller ones if not.

The memory that the engines report is compared with the free memory; `memoryplan` does the
arithmetic. Only models that run in this process are counted, and on a CPU also the process itself.
Importing this module imports torch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator

import torch

from voiceloop.config import Config
from voiceloop.engines import Kind, configured, module_of
from voiceloop.errors import OutOfMemory
from voiceloop.llm.memory import Models
from voiceloop.memoryplan import MemoryPart, MemoryPlan, PlanChange
from voiceloop.placement import free_memory, resident_memory

logger = logging.getLogger(__name__)

PROGRAM = 390_000_000
"""Measured bytes of Python, torch and the engines' libraries, with the buffers of small models."""


def check_memory(
    config: Config,
    free_on: Callable[[torch.device], int | None] = free_memory,
    *,
    own: Collection[Kind] = (),
) -> MemoryPlan:
    """Return the memory plan of the language model's device, with the other engines on it.

    `free_on` returns the free bytes of a device. Engines of the kinds in `own` are not counted:
    the caller's own classes replace them. Raises OutOfMemory if the plan does not fit; the hint
    names a smaller choice. Also raises the errors of `Models.of`.
    """
    models = Models.of(config.llm)
    device = models.device
    beside = tuple(_beside(config, device.type, own))
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


def _beside(config: Config, device: str, own: Collection[Kind]) -> Iterator[MemoryPart]:
    """Yield the memory that each configured engine takes on a device of type `device`."""
    for kind, name, settings in configured(config):
        footprint = None if kind in own else getattr(module_of(kind, name), "footprint", None)
        if footprint:
            yield from footprint(settings, device)
