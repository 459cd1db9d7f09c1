"""What does not fit into memory is refused before it is loaded, and what is proposed fits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.llm.conftest import build_model, build_tokenizer
from voiceloop.assembly import planning
from voiceloop.catalog.store import cards
from voiceloop.errors import OutOfMemory
from voiceloop.llm.engine import footprint, gguf_bytes
from voiceloop.placement import MemoryPart
from voiceloop.settings.config import Config, LlmConfig

pytestmark = pytest.mark.models


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in several files."""
    model = build_model("llama", len(build_tokenizer()), 0, torch.float16)
    model.save_pretrained(tmp_path / "model", max_shard_size="60KB")
    return tmp_path / "model"


def test_what_does_not_fit_is_refused_before_it_is_read(folder: Path) -> None:
    llm = LlmConfig(target=str(folder), draft="none", device="cpu")
    enough = Config(llm=llm)
    planning.check_memory(enough)
    for weights in folder.glob("*.safetensors"):
        with weights.open("r+b") as file:  # no weights, only the header
            file.truncate(8 + int.from_bytes(file.read(8), "little"))
    with pytest.raises(OutOfMemory, match=r"needs about .* free: .*target"):
        planning.check_memory(enough, lambda device: 1000)
    planning.check_memory(enough, lambda device: None)


def test_a_model_takes_more_than_its_files_on_a_cpu(folder: Path, tmp_path: Path) -> None:
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    config = LlmConfig(target=str(folder), draft="none", device="cpu")
    assert list(footprint(config, "cpu")) == [MemoryPart("target", int(1.5 * stored))]
    assert not list(footprint(config, "cuda"))
    (small := tmp_path / "small.gguf").write_bytes(bytes(100))
    config = LlmConfig(target=str(small), draft="ngram", device="cpu")
    assert list(footprint(config, "cpu")) == [MemoryPart("target", gguf_bytes(100))]


def test_the_largest_model_that_fits_is_proposed(tmp_path: Path) -> None:
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(10**12)  # a hole, which takes no room on the disk
    config = Config(llm=LlmConfig(target=str(tmp_path), draft="none", device="cpu"))
    plan = planning.check_memory(config, lambda device: None)
    others = sum(part.bytes for part in plan.parts if part.name != "target") - plan.taken

    def hint(more: int) -> str:
        with pytest.raises(OutOfMemory) as caught:
            planning.check_memory(config, lambda device: others + more)
        return caught.value.hint

    models = {card.name: card.memory for card in cards() if card.kind == "llm"}
    least, slack = min(models.values()), 20_000_000
    assert hint(gguf_bytes(least) - slack) == "choose smaller models, or close other programs"
    for memory in models.values():
        words = hint(gguf_bytes(memory) + slack).split()
        assert models[words[words.index("--llm.target") + 1]] == memory
