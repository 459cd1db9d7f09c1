"""Compute how much memory the built-in language model needs, and which settings need less.

Sizes come from the models' files. The memory of CUDA contexts and of captured rounds is not
counted, because it is not known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from msgspec.structs import replace

from voiceloop.bundled import bundled
from voiceloop.catalog.names import find
from voiceloop.catalog.store import cards
from voiceloop.config import LlmConfig
from voiceloop.llm.engine import SHIPPED, STARTER, draft_of, placement
from voiceloop.llm.model.cache import MIB
from voiceloop.llm.model.footprint import Footprint, GgufFootprint, read_footprint, slots_for
from voiceloop.memoryplan import MemoryPart, PlanChange

LEAST_CONTEXT = 512
"""The smallest context that is proposed, in tokens. With a smaller one, the model soon forgets what
was said."""


@dataclass(frozen=True, slots=True)
class Models:
    """The target and the draft of a configuration, and their device. A model is None if its files
    do not give its size. `draft` is also None if it is no model. `dtype` is the type of the
    weights; None for that of the checkpoint."""

    config: LlmConfig
    target: Footprint | GgufFootprint | None
    draft: Footprint | GgufFootprint | None
    device: torch.device
    dtype: torch.dtype | None

    @classmethod
    def of(cls, config: LlmConfig) -> Models:
        """Read the sizes of the models that `config` names.

        Raises EngineError for a device that does not exist, and the errors of `find` for a model
        that does not exist.
        """
        draft = draft_of(config)
        beside = None if draft in ("none", "ngram", SHIPPED) else _footprint(draft, "draft")
        return cls(config, _footprint(config.target, "target"), beside, *placement(config))

    def parts(self, **settings: object) -> Iterator[MemoryPart]:
        """Yield the memory of the models and their caches, in bytes. `settings` replace those of
        `config`."""
        config = replace(self.config, **settings)
        group, both = 0, (self.target, self.draft)
        longest = [model.longest for model in both if model and model.longest]
        for name, model in zip(("target", "draft"), both, strict=True):
            if model is not None:
                yield MemoryPart(name, model.weights(self.device.type, self.dtype))
                group += model.row(self.device.type, self.dtype)
        group *= min(config.context, *longest) if longest else config.context
        # Devices other than CUDA have no slots: caches are made when needed, at least one.
        slots = slots_for(config.cache_mb * MIB, group) + 1 if self.device.type == "cuda" else 1
        yield MemoryPart("key-value cache", group, slots)

    def changes(self) -> Iterator[PlanChange]:
        """Yield settings that need less memory, the least harmful first."""

        def with_(hint: str, **settings: object) -> PlanChange:
            return PlanChange(hint, tuple(self.parts(**settings)))

        cuda = self.device.type == "cuda"
        fewer = self.config.cache_mb if cuda else 0
        while fewer := fewer // 2:
            yield with_(f"keep fewer conversations: --llm.cache-mb {fewer}", cache_mb=fewer)
        context = self.config.context
        while (context := context // 2) >= LEAST_CONTEXT:
            flags = f"--llm.context {context}" + " --llm.cache-mb 1" * cuda
            yield with_(f"keep less of a conversation: {flags}", context=context, cache_mb=1)
        yield from self._smaller()

    def _smaller(self) -> Iterator[PlanChange]:
        """Yield changes to a smaller target of the catalogue, the largest first. Each change also
        sets the draft to `auto`, because the present draft may not suit another target."""
        target, dtype = self.target, self.dtype
        if target is None:
            return
        bytes_of = target.weights(self.device.type, dtype)
        width = 2 if dtype is None else dtype.itemsize
        named = {card.name: card.memory * width // 2 for card in cards() if card.kind == "llm"}
        others = [part for part in self.parts() if part.name not in ("target", "draft")]
        for name, needed in sorted(named.items(), key=lambda item: -item[1]):
            if needed < bytes_of and name != self.config.target:
                hint = f"choose a smaller model: --llm.target {name} --llm.draft auto"
                yield PlanChange(hint, (MemoryPart("target", needed), *others))


def _footprint(name: str, role: str) -> Footprint | GgufFootprint | None:
    """Return the size of a model; None if its files do not give it. A trained draft has no such
    files; it is small beside its target."""
    starter = bundled(STARTER[role]) if name == "starter" else None
    return read_footprint(starter or find(name, "llm"))
