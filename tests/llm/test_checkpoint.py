"""A plain model read straight from its files is the one that transformers loads from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.llm.conftest import PLAIN, Workshop, config, drawn
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.checkpoint import Checkpoint, read_checkpoint
from voiceloop.llm.model.decoder import decoder
from voiceloop.llm.model.loading import LoadedModel, load_model
from voiceloop.placement import BUILDING

pytestmark = pytest.mark.models

CPU = torch.device("cpu")


def save(workshop: Workshop, folder: Path, kind: str, *, tied: bool = False) -> Path:
    shape = config(kind, workshop.vocab)
    shape.tie_word_embeddings = tied
    model = drawn(shape, torch.float16)
    model.save_pretrained(folder, max_shard_size="60KB")
    workshop.tokenizer.save_pretrained(folder)
    return folder


def settings(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


def read(folder: Path, dtype: torch.dtype | None = torch.float32, **changes: Any) -> Any:
    return read_checkpoint(folder, settings(folder) | changes, CPU, dtype)


def logits(loaded: LoadedModel, vocab: int) -> torch.Tensor:
    ids = torch.arange(100) * 7 % vocab
    return decoder(loaded.model, vocab, 128).forward(ids, KvCache(128), 100)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", PLAIN)
def test_it_computes_what_transformers_loads(
    workshop: Workshop, tmp_path: Path, kind: str, tied: bool
) -> None:
    folder = str(save(workshop, tmp_path, kind, tied=tied))
    for dtype in (torch.float32, torch.float64, None):
        straight = load_model(folder, CPU, dtype)
        whole = load_model(folder, CPU, dtype, whole=True)
        assert isinstance(straight.model, Checkpoint)
        assert not isinstance(whole.model, Checkpoint)
        for fact in ("eos", "rows", "parameters", "longest"):
            assert getattr(straight, fact) == getattr(whole, fact), fact
        found, expected = logits(straight, workshop.vocab), logits(whole, workshop.vocab)
        assert found.dtype == expected.dtype == (dtype or torch.float16)
        # The same numbers through the same passes; only positions are tabulated elsewhere.
        assert torch.allclose(found, expected, rtol=0, atol=2e-2 if dtype is None else 1e-5)


def test_the_default_type_changes_only_while_nothing_else_is_built(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the whole process's, and other models are loaded beside this one."""
    seen = list[bool]()

    def watched(dtype: torch.dtype, change: Any = torch.set_default_dtype) -> None:
        seen.append(BUILDING.locked())
        change(dtype)

    monkeypatch.setattr(torch, "set_default_dtype", watched)
    load_model(str(save(workshop, tmp_path, "llama")), CPU, torch.bfloat16, whole=True)
    assert seen and all(seen) and not BUILDING.locked()


def test_the_decoder_takes_the_weights_and_leaves_no_second_copy(
    workshop: Workshop, tmp_path: Path
) -> None:
    model = read(save(workshop, tmp_path, "llama"))
    decoder(model, workshop.vocab, 64)
    assert not model.weights


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "gemma"},
        {"architectures": ["LlamaForSequenceClassification"]},
        {"hidden_act": "gelu"},
        {"attention_bias": True},
        {"mlp_bias": True},
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
        {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4}},
        {"rope_parameters": None},
        {"partial_rotary_factor": 0.5},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"use_sliding_window": True},
        {"quantization_config": {"bits": 4}},
        {"auto_map": {"AutoModelForCausalLM": "its.Own"}},
        {"tie_word_embeddings": None},
        {"num_key_value_heads": None},
    ],
    ids=json.dumps,
)
def test_what_is_not_plain_is_left_to_transformers(
    workshop: Workshop, tmp_path: Path, changes: dict[str, Any]
) -> None:
    folder = save(workshop, tmp_path, "llama")
    assert read(folder) is not None
    assert read(folder, **changes) is None


def test_a_window_that_is_not_ruled_out_is_left_to_transformers(
    workshop: Workshop, tmp_path: Path
) -> None:
    folder = save(workshop, tmp_path, "mistral")
    assert read(folder) is not None
    assert read(folder, sliding_window=8) is None
    said = settings(folder)
    del said["sliding_window"]  # the default is a window
    assert read_checkpoint(folder, said, CPU, torch.float32) is None


def test_other_weights_beside_them_are_left_to_transformers(
    workshop: Workshop, tmp_path: Path
) -> None:
    folder = save(workshop, tmp_path, "llama")
    shard = next(folder.glob("*.safetensors"))
    weights = load_file(shard)
    save_file({**weights, "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(6)}, shard)
    assert read(folder) is not None, "what old versions wrote beside them follows from the rest"
    save_file({**weights, "model.layers.0.self_attn.o_proj.bias": torch.ones(48)}, shard)
    assert read(folder) is None
    save_file(weights, shard)
    (folder / "adapter_config.json").write_text("{}")
    assert read(folder) is None
