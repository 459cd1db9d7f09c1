"""An assistant of Gemma 4: it attends to the target's own rows, and its drafts change no reply."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.ggufkinds import CONTEXT, write_assistant, write_kind
from tests.llm.conftest import near
from tests.llm.test_rollback import NEXT, SEEDS, one_talk
from voiceloop.errors import EngineError
from voiceloop.llm.draft.featuredraft import AssistantDrafter
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.llm.gguf.file import GgufModel
from voiceloop.llm.model.cache import KvCache
from voiceloop.llm.model.llamacpp import LlamaDecoder
from voiceloop.settings.config import LlmConfig

pytestmark = pytest.mark.models

KIND = "gemma4"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("assistant")
    target, assistant = folder / "target.gguf", folder / "assistant.gguf"
    write_kind(target, KIND)
    write_assistant(assistant)
    return target, assistant


def engine(files: tuple[Path, Path], **settings: Any) -> SpeculativeLlm:
    target, draft = map(str, files)
    given = {"target": target, "draft": draft, "max_new_tokens": NEXT, "system": "", **settings}
    return speculative(LlmConfig(**given))


def test_it_sees_what_the_target_has_read_and_no_more(files: tuple[Path, Path]) -> None:
    """The same token and feature after other words give other logits. After the same words they
    give the same, whatever was read and forgotten before."""
    target, assistant = GgufModel(files[0], "t"), GgufModel(files[1], "a", assistant=True)
    decoder, chance = LlamaDecoder(target, 250, ahead=assistant), random.Random(0)
    feature = torch.randn(1, target.width)

    def after(cache: KvCache, tokens: list[int], place: int) -> torch.Tensor:
        context = cache.context.assistant
        first, own = context.extend(tokens, feature, place)
        again, _ = context.extend(tokens, feature, place)
        assert torch.equal(first, again) and own.shape == feature.shape
        return first

    words = [chance.randrange(3, 250) for _ in range(60)]
    walked, anew = KvCache(CONTEXT), KvCache(CONTEXT)
    decoder.forward(torch.tensor(words[:50]), walked, 1)
    decoder.forward(torch.tensor([9] * 12), walked, 1)
    walked.rollback(50)
    decoder.forward(torch.tensor(words[50:]), walked, 1)
    decoder.forward(torch.tensor(words), anew, 1)
    assert near(after(walked, [5], 60), after(anew, [5], 60), 1e-2)
    other = KvCache(CONTEXT)
    decoder.forward(torch.tensor([9] * 60), other, 1)
    assert not near(after(other, [5], 60), after(anew, [5], 60), 5e-2)


@SEEDS
def test_replies_are_those_of_a_plain_loop(files: tuple[Path, Path], seeds: range) -> None:
    llm, model = engine(files, num_speculative_tokens=4), GgufModel(files[0], KIND)
    assert isinstance(llm._drafter, AssistantDrafter)
    ties = sum(one_talk(llm, model, seed) for seed in seeds)
    assert ties <= len(seeds) / 3


def test_its_drafts_are_verified(files: tuple[Path, Path]) -> None:
    talk = engine(files, num_speculative_tokens=4).conversation()
    list(talk.reply("what is 7 // 12?", 0))
    assert talk.counters.drafted > 20


def test_one_of_another_model_is_refused_in_one_line(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, assistant = files
    other, llama = tmp_path / "other.gguf", tmp_path / "llama.gguf"
    write_assistant(other, backbone=96)
    write_kind(llama, "llama")
    for pair in ((target, other), (llama, assistant)):
        with pytest.raises(EngineError, match="drafts for another model than") as caught:
            engine(pair)
        assert "llm.target" in caught.value.hint
    with pytest.raises(EngineError, match="is a draft for another model"):
        engine((assistant, assistant))
