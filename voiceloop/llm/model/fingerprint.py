"""Identifies a model by its weights, not by its path or by the format of its files.

A calibration depends on the model's weights and its chat template. Hashing gigabytes would take
seconds at every start. Any training changes nearly every weight, so samples of each tensor are
enough. A family is wider than a fingerprint. It covers all files of one model, however their
weights were rounded, and all models that were trained further from that model.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from voiceloop.llm.gguf.file import GgufModel
from voiceloop.llm.model.checkpoint import Checkpoint
from voiceloop.llm.text.template import ChatTemplate

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from voiceloop.llm.model.loading import LoadedModel

SAMPLES = 64
"""Number of weights that are sampled from each tensor, at equal steps. This is also the number of
bytes in one sample of a GGUF file."""
FILE_SAMPLES = 4096
"""Number of samples of a GGUF file, at equal steps."""


def fingerprint(model: Checkpoint | PreTrainedModel | GgufModel, template: ChatTemplate) -> str:
    """Return 32 hexadecimal digits for the weights and the chat template.

    They are equal for float32 and bfloat16 copies of one checkpoint, whichever code read it. They
    differ for a GGUF file that llama.cpp runs.
    """
    digest = hashlib.sha256()
    if isinstance(model, GgufModel):
        _sample_file(model.file, digest)
    else:
        _sample_weights(model, digest)
    frame = template.opening(""), template.user_to_reply, template.reply_to_user, template.ends
    digest.update(repr(frame).encode())
    return digest.hexdigest()[:32]


def family(loaded: LoadedModel) -> str:
    """Return 32 hexadecimal digits. They are equal for all models of the same kind, with the same
    sizes and the same vocabulary."""
    tokens = sorted(loaded.tokenizer.get_vocab().items())
    return hashlib.sha256(repr((loaded.shape, tokens)).encode()).hexdigest()[:32]


def _sample_file(file: Path, digest: Any) -> None:
    size = file.stat().st_size
    with file.open("rb") as opened:
        for place in range(FILE_SAMPLES):
            opened.seek(place * size // FILE_SAMPLES)
            digest.update(opened.read(SAMPLES))


def _sample_weights(model: Checkpoint | PreTrainedModel, digest: Any) -> None:
    named = model.weights if isinstance(model, Checkpoint) else dict(model.named_parameters())
    for name, weight in sorted(named.items()):
        count = min(SAMPLES, weight.numel())
        places = torch.linspace(0, weight.numel() - 1, count, dtype=torch.float64).long()
        rows = places.to(weight.device)
        sampled = weight.detach().flatten()[rows].to(torch.bfloat16).view(torch.int16)
        digest.update(f"{name} {tuple(weight.shape)}".encode())
        digest.update(sampled.cpu().numpy().astype("<i2").tobytes())
