"""Trained layers that draft for GGUF files: what they read of llama.cpp, and that they change no
reply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from msgspec.structs import replace

from tests.ggufkinds import CONTEXT, KINDS, write_kind
from tests.ggufs import network, tokenizer, write_gguf
from tests.llm.conftest import near
from tests.llm.test_rollback import NEXT, SEEDS, one_talk
from voiceloop.errors import EngineError
from voiceloop.llm import engine as engines
from voiceloop.llm.draft.drafts import NgramDrafter
from voiceloop.llm.draft.featuredraft import LayerDrafter
from voiceloop.llm.draft.trained import FUSE, DraftCard, DraftShape, LoadedHead
from voiceloop.llm.engine import SpeculativeLlm
from voiceloop.llm.gguf.file import GgufModel, StoredMatrix
from voiceloop.llm.model.attention import FEATURES
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.checkpoint import NORM
from voiceloop.llm.model.llamacpp import LlamaDecoder
from voiceloop.llm.model.loading import LoadedModel, family, load_model
from voiceloop.llm.rules.draftpolicy import gain
from voiceloop.settings.config import LlmConfig

pytestmark = pytest.mark.models

CPU = torch.device("cpu")
BOTH = tuple(kind for kind in KINDS if kind != "lfm2")
"""The kinds of which llama.cpp gives features and logits in one pass."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kinds")
    made = {kind: folder / f"{kind}.gguf" for kind in KINDS}
    for kind, file in made.items():
        write_kind(file, kind)
    return made


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_0"])
def test_rows_of_a_matrix_are_what_is_stored(tmp_path: Path, kind: str) -> None:
    file, words = tmp_path / "model.gguf", tokenizer("smollm")
    write_gguf(file, network(words.get_vocab_size()), words, "smollm", kind)
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(file).tensors}
    for name in ("token_embd.weight", "blk.0.ffn_down.weight"):
        matrix, tensor = StoredMatrix(file, name), stored[name]
        whole = torch.tensor(gguf.dequantize(tensor.data, tensor.tensor_type))
        assert (len(matrix), matrix.width) == whole.shape
        rows = torch.tensor([[0, 3], [len(matrix) - 1, 3]])
        assert torch.equal(matrix[rows], whole[rows])
    with pytest.raises(EngineError, match="has no absent"):
        StoredMatrix(file, "absent")
    assert StoredMatrix(file, "absent", "token_embd.weight")[torch.tensor([1])].shape == (1, 64)


@pytest.mark.parametrize("kind", BOTH)
def test_features_are_what_the_head_reads(files: dict[str, Path], kind: str) -> None:
    """But for a constant factor (Granite), or an upper limit (Gemma)."""
    model = GgufModel(files[kind], kind)
    decoder, cache = LlamaDecoder(model, model.rows, features=True), KvCache(CONTEXT)
    rows = model.head[torch.arange(model.rows)]
    plain, alone = LlamaDecoder(model, model.rows), KvCache(CONTEXT)
    for tokens in ([7, 8, 9, 10], [11], [12, 13]):
        logits = decoder.forward(torch.tensor(tokens), cache, 1)
        assert near(logits, plain.forward(torch.tensor(tokens), alone, 1), 1e-2)
        (kept,) = cache.written(FEATURES)
        product = kept[cache.length - 1 : cache.length, 0] @ rows.T
        assert float(torch.cosine_similarity(product, logits)) > 0.999


def layer(target: LoadedModel) -> LoadedHead:
    """A layer that mostly repeats the target's last choice, so some of its tokens are right."""
    assert isinstance(target.model, GgufModel)
    shape = DraftShape(target.model.width, 4, 2, 16, 64)
    draw = torch.Generator().manual_seed(0)
    weights = {
        name: 0.02 * torch.randn(size, generator=draw) for name, size in shape.weights().items()
    }
    weights[FUSE][:, shape.hidden :] += torch.eye(shape.hidden)
    weights[NORM] = torch.ones(shape.hidden)
    card = DraftCard(target.name, family(target), shape, accepted=(0.99,))
    return LoadedHead("a layer", card, weights, torch.arange(0, 250))


def engine(file: Path, **settings: Any) -> SpeculativeLlm:
    config = LlmConfig(target=str(file), max_new_tokens=NEXT, system="")
    target = load_model(str(file), CPU, None)
    return SpeculativeLlm(target, layer(target), replace(config, **settings))


def test_a_kind_of_which_llama_cpp_gives_no_features_is_refused(files: dict[str, Path]) -> None:
    with pytest.raises(EngineError, match="no features beside logits of lfm2"):
        engine(files["lfm2"])


@SEEDS
@pytest.mark.parametrize("kind", BOTH)
def test_replies_are_those_of_a_plain_loop(files: dict[str, Path], kind: str, seeds: range) -> None:
    llm, model = engine(files[kind], num_speculative_tokens=3), GgufModel(files[kind], kind)
    assert isinstance(llm._drafter, LayerDrafter)
    ties = sum(one_talk(llm, model, seed) for seed in seeds)
    assert ties <= len(seeds) / 3


def test_its_drafts_are_verified(files: dict[str, Path]) -> None:
    drafted, accepted = 0, 0
    for kind in BOTH:
        talk = engine(files[kind], num_speculative_tokens=3).conversation()
        list(talk.reply("what is 7 // 12?", 0))
        drafted, accepted = drafted + talk.counters.drafted, accepted + talk.counters.accepted
    assert 0 < accepted < drafted


def test_a_gain_is_what_leviathan_et_al_tell() -> None:
    """Of tokens right with 0.8, four for 0.05 passes each (2023, theorem 3.8)."""
    four = (1 - 0.8**5) / (1 - 0.8) / (4 * 0.05 + 1)
    assert gain(0.8, 0.05, {1: 1.0, 5: 1.0, 6: 50.0, 17: 50.0}) == pytest.approx(four)


@pytest.mark.parametrize(("dear", "drafter"), [(True, NgramDrafter), (False, LayerDrafter)])
def test_one_that_ships_is_used_where_it_pays(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, dear: bool, drafter: type[Any]
) -> None:
    costs = {1: 1.0, 17: 17.0 if dear else 1.0}  # a step costs as much as half of the tiny model
    monkeypatch.setattr(engines, "row_costs", lambda model, capacity: costs)
    assert type(engine(files["llama"])._drafter) is drafter
    named = engine(files["llama"], draft="named")
    assert type(named._drafter) is LayerDrafter
