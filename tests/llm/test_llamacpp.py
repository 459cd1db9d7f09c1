"""What llama.cpp computes of a GGUF file is what torch computes of its weights, at any cut of a
sequence, and conversations over it keep what they promise over any decoder."""

from __future__ import annotations

import gc
import random
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from tests.conftest import lacking
from tests.ggufs import converted, network, tokenizer, write_gguf
from tests.llm.conftest import near
from voiceloop.catalog.convert import GGUF, WEIGHTS
from voiceloop.config import LlmConfig
from voiceloop.errors import ModelCorrupt
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.decoder import LeanDecoder, decoder
from voiceloop.llm.model.llamacpp import LlamaDecoder
from voiceloop.llm.model.loading import load_model
from voiceloop.threads import left
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models

CPU = torch.device("cpu")
HALVES = 5e-3
"""Keys, values and what is multiplied by them are in 16 bits in llama.cpp."""
VOCAB = 250
"""Tokens that are surely there."""
TEXTS = ["it's 7", "IT'S 12 ...", "Äh, 1984", "½ it", "it it it it"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small model."""
    for package in ("xllamacpp", "gguf", "accelerate"):
        if find_spec(package) is None:
            lacking(f"{package} is not installed: pip install 'voiceloop[llama,convert]'")
    made = tmp_path_factory.mktemp("model")
    words = tokenizer("smollm")
    write_gguf(made / "small.gguf", network(words.get_vocab_size()), words, "smollm")
    converted(made / "small.gguf", made / "to")
    return made / "to"


@pytest.fixture(scope="module")
def model(folder: Path) -> LlamaDecoder:
    loaded = load_model(str(folder), CPU, torch.float32, stored=True)
    built = decoder(loaded.model, loaded.rows, 128)
    assert isinstance(built, LlamaDecoder)
    assert not (folder / WEIGHTS).exists(), "nothing is widened for it"
    return built


def engine(folder: Path, **settings: object) -> SpeculativeLlm:
    given = {"max_new_tokens": 24, "system": "", **settings}
    return speculative(LlmConfig(target=str(folder), **given))  # pyright: ignore[reportArgumentType]


def ids_of(seed: int, count: int) -> torch.Tensor:
    return torch.randint(3, VOCAB, (count,), generator=torch.Generator().manual_seed(seed))


def test_logits_are_those_of_the_weights_in_torch(folder: Path, model: LlamaDecoder) -> None:
    loaded = load_model(str(folder), CPU, torch.float32)
    plain = decoder(loaded.model, loaded.rows, 128)
    assert isinstance(plain, LeanDecoder)
    ids = ids_of(0, 50)
    expected = plain.forward(ids, KvCache(128), 20)
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


def test_what_drafts_and_changes_of_mind_leave_is_what_plain_decoding_says(folder: Path) -> None:
    plain, drafted = engine(folder, draft="none"), engine(folder, draft="ngram")
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


def test_conversations_without_room_for_both_are_read_again(folder: Path) -> None:
    small = engine(folder, cache_mb=0, draft="none")
    first, second = small.conversation(), small.conversation()
    alone = engine(folder, draft="none").conversation()
    for turn in range(3):
        said = TEXTS[turn]
        list(second.reply("12", turn))
        assert words(first.reply(said, turn)) == words(alone.reply(said, turn))
    assert first.counters.evictions > 0


def test_a_conversation_that_is_over_gives_its_context_back(folder: Path) -> None:
    llm = engine(folder, draft="none")
    conversation = llm.conversation()
    list(conversation.reply("it", 0))
    context = conversation._speculator.cache.context
    assert context is not None
    conversation.close()
    assert conversation._speculator.cache.context is None
    del context
    gc.collect()


def test_other_wishes_are_torchs(folder: Path) -> None:
    for wish in ({"dtype": "float32"}, {"best_of": 2, "temperature": 1.0}, {"branches": 1}):
        assert isinstance(engine(folder, **wish)._target, LeanDecoder)


def test_a_damaged_file_is_one_line(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if path.name not in (GGUF, WEIGHTS):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / GGUF).write_bytes((folder / GGUF).read_bytes()[:5000])
    with pytest.raises(ModelCorrupt, match=r"llama\.cpp cannot read the model"):
        engine(tmp_path)


def test_a_model_takes_the_cores_that_no_other_computes_on() -> None:
    assert [left(2, 4, working) for working in range(5)] == [4, 4, 2, 2, 2]
    assert [left(1, 2, working) for working in range(3)] == [2, 2, 1]
    assert [left(3, 3, working) for working in range(3)] == [3, 3, 3]


def words(items: object) -> str:
    return "".join(item.text for item in items if isinstance(item, TokenBurst))  # pyright: ignore[reportGeneralTypeIssues]
