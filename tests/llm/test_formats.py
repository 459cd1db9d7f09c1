"""Formats of quantised weights: which package is missing, and what is left to transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.llm.conftest import Workshop, config, drawn
from voiceloop.errors import EngineError
from voiceloop.llm.model import hf
from voiceloop.llm.model.formats import check_format
from voiceloop.llm.model.loading import load_model

pytestmark = pytest.mark.models

CPU = torch.device("cpu")


def saved(workshop: Workshop, folder: Path, kind: str, *, tied: bool) -> Path:
    shape = config(kind, workshop.vocab)
    shape.tie_word_embeddings = tied
    drawn(shape, torch.float16).save_pretrained(folder, max_shard_size="60KB")
    workshop.tokenizer.save_pretrained(folder)
    return folder


FORMATS = {
    "awq": "AWQ",
    "gptq": "GPTQ",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed-tensors",
    "fp8": "FP8",
    "fbgemm_fp8": "FP8",
    "mxfp4": "MXFP4",
}


@pytest.mark.parametrize("method", FORMATS)
def test_a_format_whose_reader_is_missing_is_named(method: str) -> None:
    said = {"quantization_config": {"quant_method": method}}
    with pytest.raises(EngineError, match=FORMATS[method]) as caught:
        check_format("some", said, lambda module: None)
    assert "\n" not in caught.value.message + caught.value.hint
    assert "pip install" in caught.value.hint
    check_format("some", said, lambda module: module)
    check_format("some", {}, lambda module: None)


def test_a_format_is_refused_before_weights_are_looked_for(
    workshop: Workshop, tmp_path: Path
) -> None:
    folder = saved(workshop, tmp_path, "llama", tied=False)
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    said = json.loads((folder / "config.json").read_text())
    said["quantization_config"] = {"quant_method": "unheard-of"}
    (folder / "config.json").write_text(json.dumps(said))
    with pytest.raises(EngineError, match="unheard-of"):
        load_model(str(folder), CPU, None)


def test_old_bitsandbytes_and_unknown_formats_are_told() -> None:
    for said, name in (({"load_in_4bit": True}, "bitsandbytes"), ({"quant_method": "x9"}, "x9")):
        with pytest.raises(EngineError, match=name):
            check_format("some", {"quantization_config": said}, lambda module: None)


class Odd(torch.Tensor):
    """What a quantised weight is: a tensor of a class of its own."""


def test_weights_of_a_class_of_their_own_are_left_to_transformers(workshop: Workshop) -> None:
    model = drawn(config("llama", workshop.vocab), torch.float32)
    assert hf._is_lean(model)
    part = next(part for part in model.modules() if isinstance(part, nn.Linear))
    part.weight = nn.Parameter(part.weight.detach().as_subclass(Odd), requires_grad=False)
    assert not hf._is_lean(model)
