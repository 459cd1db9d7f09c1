"""What is read from CTranslate2's files, against the weights that were converted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctranslate2.converters import TransformersConverter
from transformers import WhisperForConditionalGeneration

from voiceloop.asr.whisper_encoder import Weights, read_weights

pytestmark = pytest.mark.models

ROUNDED = {
    "float32": 0.0, "float16": 2**-11, "bfloat16": 2**-8, "int16": 2**-11, "int8": 1 / 250,
}  # fmt: skip
"""How far weights kept in each type are from the true ones at the most, relative to each itself, or
to the largest of all where they are kept as whole numbers."""


@pytest.fixture(scope="module")
def true(source: Path) -> Weights:
    """Those of the encoder, by transformers' names."""
    model = WhisperForConditionalGeneration.from_pretrained(source)
    return {name: value.detach().numpy() for name, value in model.model.encoder.named_parameters()}


@pytest.mark.parametrize("kept", ROUNDED)
def test_weights_of_any_type_are_those_that_were_converted(
    source: Path, true: Weights, kept: str, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    TransformersConverter(str(source)).convert(str(folder), quantization=kept)
    found = read_weights(folder / "model.bin", "encoder/")
    attention = [f"layers.0.self_attn.{name}_proj.weight" for name in "qkv"]
    pairs = {
        "conv1/weight": true["conv1.weight"],
        "conv2/bias": true["conv2.bias"],
        "position_encodings/encodings": true["embed_positions.weight"],
        "layer_0/self_attention/linear_0/weight": np.concatenate([true[n] for n in attention]),
        "layer_0/self_attention/linear_1/weight": true["layers.0.self_attn.out_proj.weight"],
        "layer_0/ffn/linear_1/weight": true["layers.0.fc2.weight"],
        "layer_norm/gamma": true["layer_norm.weight"],
    }
    for name, expected in pairs.items():
        assert found[name].dtype == np.float32
        whole = ROUNDED[kept] * np.abs(expected).max() if "int" in kept else 0
        rounded = 0 if "int" in kept else ROUNDED[kept]
        # Some numbers are smaller than 16 bits can tell from nothing.
        least = max(whole, 2.0**-24)
        np.testing.assert_allclose(found[name], expected, atol=least, rtol=rounded, err_msg=name)
    assert found["num_heads"] == 2
    assert not any("scale" in name for name in found)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x06", b"hello " * 100, b"\x05\0\0\0" + bytes(100), b"\x06\0\0\0" + b"\xff" * 90],
)
def test_what_is_no_such_file_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    with pytest.raises(ValueError):
        read_weights(path, "encoder/")


def test_what_is_kept_once_under_two_names_is_found_by_both(source: Path, tmp_path: Path) -> None:
    model = WhisperForConditionalGeneration.from_pretrained(source)
    layer: Any = model.model.encoder.layers[0]
    other: Any = model.model.decoder.layers[0]
    with torch.no_grad():  # like a norm that nobody has trained, and another
        other.fc2.bias.copy_(layer.fc2.bias)
        layer.self_attn_layer_norm.weight.copy_(layer.final_layer_norm.weight)
    model.save_pretrained(tmp_path / "source")
    for file in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        shutil.copy(source / file, tmp_path / "source")
    TransformersConverter(str(tmp_path / "source")).convert(str(tmp_path / "model"))
    found = read_weights(tmp_path / "model/model.bin", "encoder/")
    for name, expected in {
        "layer_0/ffn/linear_1/bias": layer.fc2.bias,
        "layer_0/self_attention/layer_norm/gamma": layer.final_layer_norm.weight,
        "layer_0/ffn/layer_norm/gamma": layer.final_layer_norm.weight,
    }.items():
        np.testing.assert_array_equal(found[name], expected.detach().numpy())


def test_a_file_that_ends_too_early_is_refused(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "model.bin").read_bytes()
    path = tmp_path / "model.bin"
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match="too early"):
            read_weights(path, "encoder/")
