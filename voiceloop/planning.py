"""Checks before loading that the models fit into memory, and proposes a smaller one if not.

The memory of a model is estimated by its engine, from the sizes of the model's files. The sum is
compared with the free memory. Only models that run in this process are counted, and on a CPU also
the process itself. Importing this module imports torch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator

import torch

from voiceloop.catalog.store import cards
from voiceloop.config import Config
from voiceloop.engines import Kind, configured, module_of
from voiceloop.errors import OutOfMemory
from voiceloop.llm.engine import gguf_bytes, placement
from voiceloop.memoryplan import MemoryPart, MemoryPlan
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
