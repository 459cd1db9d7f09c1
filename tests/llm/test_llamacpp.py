"""Conversations over llama.cpp keep what they promise over any decoder."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests.ggufs import network, tokenizer, write_gguf
from voiceloop.errors import EngineError
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.process import threads_left
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models

TEXTS = ["it's 7", "IT'S 12 ...", "Äh, 1984", "½ it", "it it it it"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small model."""
    made = tmp_path_factory.mktemp("model") / "small.gguf"
    words = tokenizer("smollm")
    write_gguf(made, network(words.get_vocab_size()), words, "smollm")
    return made


def engine(file: Path, **settings: object) -> SpeculativeLlm:
    given = {"max_new_tokens": 24, "system": "", **settings}
    return speculative(LlmConfig(target=str(file), **given))  # pyright: ignore[reportArgumentType]


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


def words(items: object) -> str:
    return "".join(item.text for item in items if isinstance(item, TokenBurst))  # pyright: ignore[reportGeneralTypeIssues]


def test_a_model_takes_the_cores_that_no_other_computes_on() -> None:
    assert [threads_left(2, 4, working) for working in range(5)] == [4, 4, 2, 2, 2]
    assert [threads_left(1, 2, working) for working in range(3)] == [2, 2, 1]
    assert [threads_left(3, 3, working) for working in range(3)] == [3, 3, 3]
