"""What does not fit into memory is refused before it is loaded, and what is proposed fits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.llm.conftest import build_model, build_tokenizer
from voiceloop.assembly.planning import MARGIN, MemoryPlan, check_memory
from voiceloop.catalog.store import cards
from voiceloop.errors import OutOfMemory
from voiceloop.llm.engine import footprint, gguf_bytes
from voiceloop.placement import MemoryPart
from voiceloop.settings.config import Config, LlmConfig

pytestmark = pytest.mark.models

counts = st.integers(0, 10**12)
parts = st.lists(st.builds(MemoryPart, st.sampled_from("abc"), counts)).map(tuple)
plans = st.builds(MemoryPlan, st.just("cpu"), st.none() | counts, parts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in several files."""
    model = build_model("llama", len(build_tokenizer()), 0, torch.float16)
    model.save_pretrained(tmp_path / "model", max_shard_size="60KB")
    return tmp_path / "model"


def test_what_does_not_fit_is_refused_before_it_is_read(folder: Path) -> None:
    llm = LlmConfig(target=str(folder), draft="none", device="cpu")
    enough = Config(llm=llm)
    check_memory(enough)
    for weights in folder.glob("*.safetensors"):
        with weights.open("r+b") as file:  # no weights, only the header
            file.truncate(8 + int.from_bytes(file.read(8), "little"))
    with pytest.raises(OutOfMemory, match=r"needs about .* free: .*target"):
        check_memory(enough, lambda device: 1000)
    check_memory(enough, lambda device: None)


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
    plan = check_memory(config, lambda device: None)
    others = sum(part.bytes for part in plan.parts if part.name != "target") - plan.taken

    def hint(more: int) -> str:
        with pytest.raises(OutOfMemory) as caught:
            check_memory(config, lambda device: others + more)
        return caught.value.hint

    models = {card.name: card.memory for card in cards() if card.kind == "llm"}
    least, slack = min(models.values()), 20_000_000
    assert hint(gguf_bytes(least) - slack) == "choose smaller models, or close other programs"
    for memory in models.values():
        words = hint(gguf_bytes(memory) + slack).split()
        assert models[words[words.index("--llm.target") + 1]] == memory


@given(parts, st.none() | st.floats(0.5, 1.5))
def test_nothing_is_refused_that_fits_or_is_not_known(
    wanted: tuple[MemoryPart, ...], share: float | None
) -> None:
    needed = sum(part.bytes for part in wanted)
    plan = MemoryPlan("cpu", None if share is None else int(share * needed), wanted)
    if plan.free is None or plan.needed <= plan.free:
        assert plan.fits
    elif plan.needed > plan.free / (1 - MARGIN) * 1.001 + 1:
        assert not plan.fits


@given(plans, counts)
def test_what_a_process_has_already_need_not_be_free(plan: MemoryPlan, taken: int) -> None:
    already = MemoryPart("program", taken)
    held = MemoryPlan(plan.device, plan.free, (*plan.parts, already), taken)
    assert held.fits == plan.fits
    assert held.needed == plan.needed + taken


def test_it_is_told_in_one_line() -> None:
    found = MemoryPlan(
        "cuda",
        22_100_000_000,
        (
            MemoryPart("target", 14_900_000_000),
            MemoryPart("draft", 1_000_000_000),
            MemoryPart("key-value cache", 568_000_000),
            MemoryPart("voice", 0),
        ),
    )
    assert str(found) == (
        "needs about 16.5 GB on cuda, 22.1 GB free: "
        "target 14.9 GB, draft 1.0 GB, key-value cache 568 MB"
    )
