"""What llama.cpp computes of a GGUF file is what torch computes of its weights, at any cut of a
sequence, and conversations over it keep what they promise over any decoder."""

from __future__ import annotations

import gc
import random
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from tests.ggufs import network, tokenizer, write_gguf
from tests.llm.conftest import near
from voiceloop.errors import EngineError
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import decoder
from voiceloop.llm.model.llamacpp import LlamaDecoder
from voiceloop.llm.model.loading import load_model
from voiceloop.process import left
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models

CPU = torch.device("cpu")
HALVES = 5e-3
"""Keys, values and what is multiplied by them are in 16 bits in llama.cpp."""
VOCAB = 250
"""Tokens that are surely there."""
TEXTS = ["it's 7", "IT'S 12 ...", "Äh, 1984", "½ it", "it it it it"]


def small() -> LlamaForCausalLM:
    return network(tokenizer("smollm").get_vocab_size())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small model."""
    made = tmp_path_factory.mktemp("model") / "small.gguf"
    write_gguf(made, small(), tokenizer("smollm"), "smollm")
    return made


@pytest.fixture(scope="module")
def model(file: Path) -> LlamaDecoder:
    loaded = load_model(str(file), CPU, torch.float32)
    built = decoder(loaded.model, loaded.rows, 128)
    assert isinstance(built, LlamaDecoder)
    return built


def engine(file: Path, **settings: object) -> SpeculativeLlm:
    given = {"max_new_tokens": 24, "system": "", **settings}
    return speculative(LlmConfig(target=str(file), **given))  # pyright: ignore[reportArgumentType]


def ids_of(seed: int, count: int) -> torch.Tensor:
    return torch.randint(3, VOCAB, (count,), generator=torch.Generator().manual_seed(seed))


def test_logits_are_those_of_the_weights_in_torch(model: LlamaDecoder) -> None:
    ids = ids_of(0, 50)
    with torch.inference_mode():
        expected = small()(ids[None]).logits[0, -20:]
    assert near(model.forward(ids, KvCache(128), 20), expected, HALVES)


def test_any_cuts_and_rollbacks_give_the_logits_of_the_whole(model: LlamaDecoder) -> None:
    ids, chance = ids_of(1, 100), random.Random(1)
    whole = model.forward(ids, KvCache(128), len(ids) - 64)
    cache = KvCache(128)
    for _ in range(40):
        cache.rollback(chance.randrange(len(ids)))
        count = chance.randint(1, min(30, len(ids) - cache.length))
        if cache.length + count <= 64:
            model.forward(ids[cache.length : cache.length + count], cache, 1)
            continue
        keep = chance.randint(1, min(count, cache.length + count - 64))
        found = model.forward(ids[cache.length : cache.length + count], cache, keep)
        assert near(found, whole[cache.length - 64 - keep : cache.length - 64], HALVES)


def test_what_drafts_and_changes_of_mind_leave_is_what_plain_decoding_says(file: Path) -> None:
    plain, drafted = engine(file, draft="none"), engine(file, draft="ngram")
    assert isinstance(drafted._target, LlamaDecoder)
    one, two, chance = plain.conversation(), drafted.conversation(), random.Random(2)
    for turn in range(8):
        said = chance.choice(TEXTS)
        expected = list(one.reply(said, turn))
        if turn % 2:  # a reply to other words is begun, and broken off
            steps = two.reply(chance.choice(TEXTS), turn)
            for _ in range(chance.randrange(6)):
                next(steps, None)
            steps.close()
            found = list(two.revise(said, turn))
        else:
            list(two.prefill(said, turn))
            found = list(two.reply(said, turn))
        assert words(found) == words(expected)
        heard = chance.randrange(10)
        assert one.heard(heard) == two.heard(heard)
    assert two.ids == one.ids


def test_conversations_without_room_for_both_are_read_again(file: Path) -> None:
    small = engine(file, cache_mb=0, draft="none")
    first, second = small.conversation(), small.conversation()
    alone = engine(file, draft="none").conversation()
    for turn in range(3):
        said = TEXTS[turn]
        list(second.reply("12", turn))
        assert words(first.reply(said, turn)) == words(alone.reply(said, turn))
    assert first.counters.evictions > 0


def test_a_conversation_that_is_over_gives_its_context_back(file: Path) -> None:
    llm = engine(file, draft="none")
    conversation = llm.conversation()
    list(conversation.reply("it", 0))
    context = conversation._speculator.cache.context
    assert context is not None
    conversation.close()
    assert conversation._speculator.cache.context is None
    del context
    gc.collect()


@pytest.mark.parametrize(
    "wish",
    [{"dtype": "float32"}, {"best_of": 2, "temperature": 1.0}, {"branches": 1}],
    ids=lambda wish: next(iter(wish)),
)
def test_what_only_torch_can_do_is_refused(file: Path, wish: dict[str, object]) -> None:
    with pytest.raises(EngineError, match=f"a GGUF file, for which llm.{next(iter(wish))} does"):
        engine(file, **wish)


def test_a_model_takes_the_cores_that_no_other_computes_on() -> None:
    assert [left(2, 4, working) for working in range(5)] == [4, 4, 2, 2, 2]
    assert [left(1, 2, working) for working in range(3)] == [2, 2, 1]
    assert [left(3, 3, working) for working in range(3)] == [3, 3, 3]


def words(items: object) -> str:
    return "".join(item.text for item in items if isinstance(item, TokenBurst))  # pyright: ignore[reportGeneralTypeIssues]
