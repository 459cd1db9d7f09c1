"""The MTP layer in a GGUF file: what it computes, and that its drafts change no reply."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.ggufkinds import CONTEXT, mtp_layer, network, write_kind
from tests.llm.conftest import near
from tests.llm.test_rollback import NEXT, SEEDS, one_talk
from voiceloop.llm.draft.drafts import NgramDrafter
from voiceloop.llm.draft.featuredraft import LayerDrafter
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.llm.gguf.context import HeadContext
from voiceloop.llm.gguf.file import ROWS, GgufModel
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.llamacpp import LlamaDecoder, LlamaHead
from voiceloop.settings.config import LlmConfig

pytestmark = pytest.mark.models

KIND = "qwen35"


def engine(file: Path, **settings: object) -> SpeculativeLlm:
    given = {"max_new_tokens": NEXT, "system": "", **settings}
    return speculative(LlmConfig(target=str(file), **given))  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("head") / "model.gguf"
    write_kind(made, KIND, head=mtp_layer())
    return made


def test_a_layer_that_sees_only_the_token_gives_what_torch_gives(tmp_path: Path) -> None:
    file, weights = tmp_path / "model.gguf", mtp_layer(still=True)
    write_kind(file, KIND, head=weights)
    model, small = GgufModel(file, "small"), cast(Any, network(KIND))
    tokens = [5, 200, 31, 5]
    embedded = small.get_input_embeddings().weight[tokens]

    def normed(x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], weights[name], eps=1e-6)

    last = normed(normed(embedded, "nextn.enorm"), "nextn.shared_head_norm")[-1:]
    expected = last @ small.lm_head.weight.T
    features = torch.randn(len(tokens), model.width)
    logits, feature = HeadContext(model, CONTEXT).extend(tokens, features)
    assert near(logits, expected, 1e-3)
    assert near(feature, last, 1e-3)


def test_rolled_back_is_read_anew(file: Path) -> None:
    head, chance = LlamaHead(GgufModel(file, "small"), 250), random.Random(0)
    cache, tokens, before = KvCache(CONTEXT), list[int](), torch.empty(0, 64)
    for _ in range(60):
        kept = min(chance.randrange(max(0, len(tokens) - 12), len(tokens) + 1), ROWS - 9)
        tokens, before = tokens[:kept], before[:kept]
        cache.rollback(kept)
        count = chance.choice((1, 2, 9))
        tokens += (new := [chance.randrange(3, 250) for _ in range(count)])
        before = torch.cat((before, torch.randn(count, 64)))
        found = head.forward(torch.tensor(new), before[kept:], cache)
        anew = head.forward(torch.tensor(tokens), before, KvCache(CONTEXT))
        for one, other in zip(found, anew, strict=True):
            assert near(one, other, 1e-2)


def test_the_features_are_what_the_head_of_the_model_reads(file: Path) -> None:
    model = GgufModel(file, "small")
    decoder, cache = LlamaDecoder(model, 250, ahead=model), KvCache(CONTEXT)
    head = cast(Any, network(KIND)).lm_head.weight.T
    for tokens in ([7, 8, 9, 10], [11], [12, 13]):
        logits = decoder.forward(torch.tensor(tokens), cache, len(tokens))
        (rows,) = cache.written(-1)
        assert near(
            logits, (rows[cache.length - len(tokens) : cache.length, 0] @ head)[:, :250], 1e-3
        )


@SEEDS
def test_replies_are_those_of_a_plain_loop(file: Path, seeds: range) -> None:
    llm, model = engine(file, num_speculative_tokens=4), GgufModel(file, KIND)
    assert isinstance(llm._drafter, LayerDrafter)
    ties = sum(one_talk(llm, model, seed) for seed in seeds)
    assert ties <= len(seeds) / 3


def test_its_drafts_are_verified_and_without_it_there_are_n_grams(file: Path) -> None:
    talk = engine(file, num_speculative_tokens=4).conversation()
    list(talk.reply("what is 7 // 12?", 0))
    assert talk.counters.drafted > 20
    assert isinstance(engine(file, draft="ngram")._drafter, NgramDrafter)


def test_settings_that_tell_of_a_layer_that_is_not_there_are_not_believed(tmp_path: Path) -> None:
    file, layer = tmp_path / "model.gguf", mtp_layer()
    del layer["nextn.eh_proj"]
    write_kind(file, KIND, head=layer)
    llm = engine(file)
    assert isinstance(llm._drafter, NgramDrafter)
    assert list(llm.conversation().reply("it's 7", 0))
