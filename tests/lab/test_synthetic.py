"""The synthetic draft is right as often as asked, and all weights take part."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lab.decoding.pair import Subjects
from lab.decoding.synthetic import synthetic_pair, vocabulary
from lab.decoding.transformers import TransformersMode
from tests.lab.conftest import CPU, prompts_for
from voiceloop.bench.modes import OurMode, acceptance
from voiceloop.settings.config import LlmConfig

pytestmark = pytest.mark.models

VOCAB = vocabulary("tiny")
WORDS = torch.arange(1, VOCAB)


@torch.inference_mode()
def next_words(model: Any, contexts: torch.Tensor) -> torch.Tensor:
    return model(contexts).logits[:, -1].argmax(-1)


@pytest.mark.parametrize("asked", [0.0, 0.35, 0.9, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_draft_is_right_about_the_chosen_share_of_words(
    asked: float, dtype: torch.dtype
) -> None:
    target, draft = synthetic_pair("tiny", asked, CPU, dtype)
    before = torch.randint(1, VOCAB, (len(WORDS), 12), generator=torch.Generator().manual_seed(0))
    contexts = torch.cat((before, WORDS.unsqueeze(1)), 1)
    says = next_words(target.model, contexts)
    assert says.tolist() == [*range(2, VOCAB), 1], "the context changed a word"
    right = (next_words(draft.model, contexts) == says).double().mean()
    assert float(right) == pytest.approx(asked, abs=0.012)


def test_guesses_stand_as_often_as_asked(oracle: Subjects) -> None:
    config = LlmConfig(max_new_tokens=64, device="cpu", context=256)
    modes = {
        "ours": OurMode(oracle.pair.conversation(), 64),
        "theirs": TransformersMode(oracle.target, oracle.draft, 4, config, oracle.pair.eos),
    }
    prompts = prompts_for(oracle, 12)
    for name, mode in modes.items():
        answers = [mode.answer(prompt) for prompt in prompts]
        rounds = [one for answer in answers for one in answer.rounds]
        assert sum(one.drafted for one in rounds) > 800
        assert acceptance(rounds) == pytest.approx(0.6, abs=0.06), name
        assert all(answer.tokens == 64 for answer in answers)
