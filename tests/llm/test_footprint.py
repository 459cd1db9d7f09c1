"""What a model is said to take before it is loaded is what it takes once it is."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.llm.conftest import LEAN, Workshop, config, drawn
from voiceloop import planning
from voiceloop.config import Config, LlmConfig
from voiceloop.errors import EngineError, OutOfMemory
from voiceloop.llm.model import hf
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.checkpoint import EMBEDDING
from voiceloop.llm.model.decoder import LeanDecoder, decoder
from voiceloop.llm.model.footprint import Footprint, read_footprint
from voiceloop.llm.model.formats import check_format
from voiceloop.llm.model.loading import load_model
from voiceloop.placement import available_memory

pytestmark = pytest.mark.models

CPU = torch.device("cpu")


def saved(workshop: Workshop, folder: Path, kind: str, *, tied: bool) -> Path:
    shape = config(kind, workshop.vocab)
    shape.tie_word_embeddings = tied
    drawn(shape, torch.float16).save_pretrained(folder, max_shard_size="60KB")
    workshop.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kind", LEAN)
def test_the_estimate_is_what_the_tensors_take(
    workshop: Workshop, tmp_path: Path, kind: str, tied: bool, dtype: torch.dtype
) -> None:
    folder = saved(workshop, tmp_path, kind, tied=tied)
    footprint = read_footprint(folder)
    assert footprint is not None
    loaded = load_model(str(folder), CPU, dtype)
    built = decoder(loaded.model, loaded.rows, 128)
    assert isinstance(built, LeanDecoder)
    told = footprint.weights("cpu", dtype)
    taken = built.pass_bytes + built.embedding.nbytes
    assert taken == pytest.approx(told, rel=0.03)
    cache = KvCache(1)
    built.forward(torch.zeros(1, dtype=torch.long), cache, 1)
    assert cache.nbytes == footprint.row("cpu", dtype)
    assert footprint.longest == loaded.longest


def test_a_tied_head_is_a_copy_on_a_cpu_alone(workshop: Workshop, tmp_path: Path) -> None:
    footprint = read_footprint(saved(workshop, tmp_path, "llama", tied=True))
    assert isinstance(footprint, Footprint)
    assert footprint.weights("cuda", None) == footprint.stored
    embedding = 2 * math.prod(footprint.shapes[EMBEDDING])
    assert footprint.weights("cpu", None) == footprint.stored + embedding


def test_files_that_say_nothing_are_not_counted(tmp_path: Path) -> None:
    assert read_footprint(tmp_path) is None
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 64)
    assert read_footprint(tmp_path) is None


def test_what_does_not_fit_is_refused_before_it_is_read(workshop: Workshop, tmp_path: Path) -> None:
    folder = saved(workshop, tmp_path, "llama", tied=False)
    llm = LlmConfig(target=str(folder), draft="none", device="cpu")
    enough = Config(llm=llm)
    planning.check_memory(enough)
    for weights in folder.glob("*.safetensors"):
        with weights.open("r+b") as file:  # no weights, only the header
            file.truncate(8 + int.from_bytes(file.read(8), "little"))
    with pytest.raises(OutOfMemory, match=r"needs about .* free: target"):
        planning.check_memory(enough, lambda device: 1000)
    planning.check_memory(enough, lambda device: None)


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
        check_format("some", said, lambda package: False)
    assert "\n" not in caught.value.message + caught.value.hint
    assert "pip install" in caught.value.hint
    check_format("some", said, lambda package: True)
    check_format("some", {}, lambda package: False)


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
            check_format("some", {"quantization_config": said}, lambda package: False)


class Odd(torch.Tensor):
    """What a quantised weight is: a tensor of a class of its own."""


def test_weights_of_a_class_of_their_own_are_left_to_transformers(workshop: Workshop) -> None:
    model = drawn(config("llama", workshop.vocab), torch.float32)
    assert hf._is_lean(model)
    part = next(part for part in model.modules() if isinstance(part, nn.Linear))
    part.weight = nn.Parameter(part.weight.detach().as_subclass(Odd), requires_grad=False)
    assert not hf._is_lean(model)


def test_memory_within_a_control_group(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert available_memory(tmp_path) is None
    write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   1000 kB\n")
    assert available_memory(tmp_path) == 1_024_000
    write("proc/self/cgroup", "0::/a/b\n")
    write("sys/fs/cgroup/a/memory.max", "500000\n")
    write("sys/fs/cgroup/a/memory.current", "400000\n")
    assert available_memory(tmp_path) == 100_000
    write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 7000\n")
    assert available_memory(tmp_path) == 107_000
    write("sys/fs/cgroup/a/b/memory.max", "max\n")
    assert available_memory(tmp_path) == 107_000
