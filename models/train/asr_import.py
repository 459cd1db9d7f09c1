"""Reads training weights back from an exported recogniser.

It reads CTranslate2's file format, version 6 (`ctranslate2/specs/model_spec.py`), and reverses the
converter: it scales rows of 8 bits, and splits joined projections. The weights stay rounded to
int8; training goes on from there.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import torch

DTYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)
NAMES = (
    (r"/layer_(\d+)/self_attention/layer_norm/", r".layers.\1.self_attn_layer_norm."),
    (r"/layer_(\d+)/attention/layer_norm/", r".layers.\1.encoder_attn_layer_norm."),
    (r"/layer_(\d+)/ffn/layer_norm/", r".layers.\1.final_layer_norm."),
    (r"/layer_(\d+)/ffn/linear_0/", r".layers.\1.fc1."),
    (r"/layer_(\d+)/ffn/linear_1/", r".layers.\1.fc2."),
    (r"/layer_(\d+)/self_attention/linear_0/", r".layers.\1.self_attn.q_proj+k_proj+v_proj."),
    (r"/layer_(\d+)/self_attention/linear_1/", r".layers.\1.self_attn.out_proj."),
    (r"/layer_(\d+)/attention/linear_0/", r".layers.\1.encoder_attn.q_proj."),
    (r"/layer_(\d+)/attention/linear_1/", r".layers.\1.encoder_attn.k_proj+v_proj."),
    (r"/layer_(\d+)/attention/linear_2/", r".layers.\1.encoder_attn.out_proj."),
    (r"/position_encodings/encodings", r".embed_positions.weight"),
    (r"/embeddings/", r".embed_tokens."),
    (r"/", "."),
    (r"\.gamma$", ".weight"),
    (r"\.beta$", ".bias"),
)
"""Patterns of CTranslate2's names, and the names in transformers. All are applied, in order."""


def variables(path: Path) -> dict[str, np.ndarray]:
    """Read the variables of a CTranslate2 `model.bin`. Raises ValueError for another version."""
    data = path.read_bytes()
    at = 0

    def number(code: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f"<{code}", data, at)
        at += struct.calcsize(code)
        return value

    def string() -> str:
        nonlocal at
        length = number("H")
        text = data[at : at + length - 1].decode()
        at += length
        return text

    if (version := number("I")) != 6:
        raise ValueError(f"{path}: format {version} of CTranslate2, and 6 is known")
    string(), number("I")  # the name of the specification and its revision
    found = {}
    for _ in range(number("I")):
        name = string()
        shape = [number("I") for _ in range(number("B"))]
        dtype = np.dtype(DTYPES[number("B")])
        size = number("I")
        found[name] = np.frombuffer(data, dtype, size // dtype.itemsize, at).reshape(shape)
        at += size
    return found


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the float32 state of a `WhisperForConditionalGeneration` from an exported `folder`.

    It lacks `proj_out`, which is tied, and the biases of `k_proj`, which Whisper does not have.
    """
    stored = variables(folder / "model.bin")
    state = {}
    for name, value in stored.items():
        if value.ndim == 0 or name.endswith(("_scale", "alignment_heads")):
            continue
        plain = value.astype(np.float32)
        if value.dtype == np.int8:
            scale = stored[f"{name}_scale"]
            plain /= scale.reshape(-1, *[1] * (value.ndim - 1))
        for pattern, replacement in NAMES:
            name = re.sub(pattern, replacement, name)
        before, _, after = f"model.{name}".rpartition(".")
        parent, _, joined = before.rpartition(".")
        parts = joined.split("+")
        for part, rows in zip(parts, np.split(plain, len(parts)), strict=True):
            if (part, after) != ("k_proj", "bias"):
                state[f"{parent}.{part}.{after}"] = torch.from_numpy(rows.copy())
    return state
