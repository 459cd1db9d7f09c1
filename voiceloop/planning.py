"""Before anything is loaded: does it fit into memory, and if not, what would?

Looks up what the files of the configured models say of their sizes and how much is free, and
leaves the arithmetic to `memoryplan`. Only models that run in this process are counted, by what
their files tell, and on a CPU the process itself. What computing takes there was measured; on a GPU
contexts of CUDA and captured rounds are not known beforehand. Importing this imports torch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from msgspec.structs import replace

from voiceloop.asr.encoder import encoder_bytes
from voiceloop.asr.encoding import is_ours, read_windows
from voiceloop.asr.placement import whisper_device, whisper_type
from voiceloop.asr.smart_turn import NAME as SMART_TURN
from voiceloop.bundled import bundled
from voiceloop.catalog.names import VOICES, find, voice_model
from voiceloop.catalog.store import cards
from voiceloop.config import AsrConfig, Config, LlmConfig, TtsConfig
from voiceloop.errors import OutOfMemory
from voiceloop.llm.cache import MIB
from voiceloop.llm.engine import SHIPPED, STARTER, draft_of, placement, runs_stored
from voiceloop.llm.footprint import Footprint, read_footprint, slots_for
from voiceloop.memoryplan import Change, Part, Plan
from voiceloop.placement import free_memory, resident_memory

logger = logging.getLogger(__name__)

_SHARES = {"int8": 0.5, "float16": 1.0, "float32": 2.0}
"""Of the bytes that weights take in Whisper's files, which mostly have 16 bits."""
PROGRAM = 390_000_000
"""Bytes that Python, torch and the engines' libraries take, with what small models compute in, as
measured."""
SYNTHESIS = 60_000_000
"""Bytes in which a voice computes a clause, as measured."""
LEAST_CONTEXT = 512
"""Tokens under which a conversation is soon forgotten: fewer are not proposed."""


def check_memory(
    config: Config, free_on: Callable[[torch.device], int | None] = free_memory
) -> Plan:
    """What a language model in this process needs, and all that is beside it on its device.

    Raises OutOfMemory, with what to choose instead, where that is more than is free; EngineError
    for a device that is not there; what `find` raises for a model that is not.
    """
    device, dtype = placement(config.llm)
    models = _Models.of(config.llm, device, dtype)
    beside = tuple(_beside(config, device))
    taken = 0
    if device.type == "cpu":
        taken = resident_memory() or 0
        beside = (Part("program", max(PROGRAM, taken)), *beside)
    plan = Plan(device.type, free_on(device), (*models.parts(config.llm), *beside), taken)
    logger.info("%s", plan)
    if not plan.fits:
        hint = plan.instead(_changes(config.llm, models, beside))
        raise OutOfMemory(
            f"this does not fit into memory: {plan}",
            hint or "choose smaller models, or close other programs",
        )
    return plan


@dataclass(frozen=True, slots=True)
class _Models:
    """The language models and where they go."""

    target: Footprint | None
    draft: Footprint | None
    device: torch.device
    dtype: torch.dtype | None

    @classmethod
    def of(cls, config: LlmConfig, device: torch.device, dtype: torch.dtype | None) -> _Models:
        """Those that `config` names."""
        draft, stored = draft_of(config), runs_stored(config)
        named = draft not in ("none", "ngram", SHIPPED)
        beside = _footprint(draft, "draft", stored) if named else None
        return cls(_footprint(config.target, "target", stored), beside, device, dtype)

    def parts(self, config: LlmConfig) -> Iterator[Part]:
        """What they and their caches take."""
        group, both = 0, (self.target, self.draft)
        longest = [model.longest for model in both if model and model.longest]
        for name, model in zip(("target", "draft"), both, strict=True):
            if model is not None:
                yield Part(name, model.weights(self.device.type, self.dtype, config.quantize))
                group += model.row(self.device.type, self.dtype)
        group *= min(config.context, *longest) if longest else config.context
        # Elsewhere caches are made when they are needed, and one is needed for certain.
        slots = slots_for(config.cache_mb * MIB, group) + 1 if self.device.type == "cuda" else 1
        yield Part("key-value cache", group, slots)


def _footprint(name: str, role: str, stored: bool) -> Footprint | None:
    """None where nothing tells, as of a trained draft, which is small beside its target."""
    starter = bundled(STARTER[role]) if name == "starter" else None
    return read_footprint(starter or find(name, "llm"), as_is=stored)


def _beside(config: Config, device: torch.device) -> Iterator[Part]:
    """What else goes onto that device."""
    if config.asr.engine == "whisper" and whisper_device(config.asr.device) == device.type:
        yield Part("Whisper", _whisper(config.asr, device.type))
        if device.type == "cpu":  # measured: what it computes in, and what loading leaves
            yield Part("its work", _bytes(_whisper_folder(config.asr) / "model.bin"))
    if config.tts.engine in VOICES and device.type == "cpu":
        yield Part("voice", _voice(config.tts) + SYNTHESIS)
    if config.turns.sound == SMART_TURN and device.type == "cpu":
        yield Part("ear", sum(map(_bytes, find(SMART_TURN, "turn").rglob("*.onnx"))))


def _whisper(config: AsrConfig, device: str) -> int:
    """Bytes of the recogniser's weights, and those of its encoder that is our own on a CPU."""
    folder = _whisper_folder(config)
    path = folder / "model.bin"
    kept = int(_bytes(path) * _SHARES[whisper_type(config.compute_type, device)])
    if not is_ours(device, read_windows(folder)):
        return kept
    return kept + encoder_bytes(path, silence=config.pad_s is not None)


def _whisper_folder(config: AsrConfig) -> Path:
    starter = config.model == "starter"
    return bundled("models/starter/asr") if starter else find(config.model, "asr")


def _voice(config: TtsConfig) -> int:
    folder = find(voice_model(config), VOICES[config.engine][0])
    return sum(map(_bytes, folder.rglob("*.onnx")))


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _changes(config: LlmConfig, models: _Models, beside: tuple[Part, ...]) -> Iterator[Change]:
    """What could be set otherwise, what does least harm first."""

    def with_(hint: str, **settings: object) -> Change:
        parts = models.parts(replace(config, **settings))
        return Change(hint, (*parts, *beside))

    if models.device.type == "cuda":
        fewer = config.cache_mb
        while fewer := fewer // 2:
            yield with_(f"keep fewer conversations: --llm.cache-mb {fewer}", cache_mb=fewer)
    context = config.context
    while (context := context // 2) >= LEAST_CONTEXT:
        smaller = {"context": context, "cache_mb": 1}
        told = f"--llm.context {context}" + (
            " --llm.cache-mb 1" if models.device.type == "cuda" else ""
        )
        yield with_(f"keep less of a conversation: {told}", **smaller)
    if models.device.type == "cuda":
        for how in ("int8", "int4"):
            yield with_(
                f"round its weights, which changes what it says: --llm.quantize {how}", quantize=how
            )
    yield from _smaller(config, models, beside)


def _smaller(config: LlmConfig, models: _Models, beside: tuple[Part, ...]) -> Iterator[Change]:
    """Other targets by name, the largest first; a draft of another family goes with the old one."""
    target, dtype = models.target, models.dtype
    if target is None:
        return
    bytes_of = target.weights(models.device.type, dtype, config.quantize)
    width = 2 if dtype is None else dtype.itemsize
    named = {card.name: card.memory * width // 2 for card in cards() if card.kind == "llm"}
    others = [part for part in models.parts(config) if part.name not in ("target", "draft")]
    for name, needed in sorted(named.items(), key=lambda item: -item[1]):
        if needed < bytes_of and name != config.target:
            hint = f"choose a smaller model: --llm.target {name} --llm.draft auto"
            yield Change(hint, (Part("target", needed), *others, *beside))
