"""The modes answer alike, and what they tell of their rounds is what happened."""

from __future__ import annotations

import pickle

import pytest
from msgspec.structs import replace
from transformers import PreTrainedModel

from lab.decoding.pair import Subjects
from lab.decoding.transformers import TransformersMode
from tests.lab.conftest import TOKENS, drawn, prompts_for
from voiceloop.bench.modes import DecodingMode, OurMode, without_draft
from voiceloop.llm.engine import SpeculativeLlm, speculative
from voiceloop.settings.config import LlmConfig
from voiceloop.types import TokenBurst

pytestmark = pytest.mark.models

CONFIG = LlmConfig(max_new_tokens=TOKENS, num_speculative_tokens=3, context=256, device="cpu")
ASSISTED = ("hf_assisted", "hf_assisted_default")


"""What a round drafted and accepted."""


@pytest.fixture(scope="module")
def both() -> Subjects:
    return drawn(CONFIG)


def modes(both: Subjects) -> dict[str, DecodingMode]:
    """All five, as the bench sets them up."""

    def transformers(length: int | None, draft: PreTrainedModel | None) -> TransformersMode:
        return TransformersMode(both.target, draft, length, CONFIG, both.pair.eos)

    return {
        "plain": OurMode(both.pair.plain().conversation(), CONFIG.max_new_tokens),
        "speculative": OurMode(both.pair.conversation(), CONFIG.max_new_tokens),
        "hf_plain": transformers(None, None),
        "hf_assisted": transformers(3, both.draft),
        "hf_assisted_default": transformers(None, both.draft),
    }


def test_all_modes_say_the_same_and_count_the_same_tokens(both: Subjects) -> None:
    for prompt in prompts_for(both, 3):
        answers = {name: mode.answer(prompt) for name, mode in modes(both).items()}
        said = answers["plain"].ids
        assert len(set(said)) > 3, "the reply depends on nothing"
        for name, answer in answers.items():
            assert answer.ids == said, name
            assert answer.tokens == CONFIG.max_new_tokens
            assert answer.first_s > 0
            assert answer.seconds > 0


def test_rounds_give_the_tokens_they_are_said_to_give(both: Subjects) -> None:
    for name, mode in modes(both).items():
        answer = mode.answer(prompts_for(both, 1)[0])
        assert answer.round_tokens == answer.tokens - (name not in ASSISTED), name
        gained = [
            1 + (one.drafted if one.accepted is None else one.accepted) for one in answer.rounds
        ]
        if name in ("plain", "hf_plain"):
            assert gained == [1] * (answer.tokens - 1)
        else:
            assert sum(one.drafted for one in answer.rounds) > 0, name
            # What a last round gave beyond the end of the reply is not known to transformers.
            assert sum(gained[:-1]) < answer.round_tokens <= sum(gained), name


@pytest.mark.parametrize("place", [0, 1, 6])
def test_a_reply_ends_where_the_model_ends_it(both: Subjects, place: int) -> None:
    whole = modes(both)["plain"].answer(prompts_for(both, 1)[0]).ids
    ending = drawn(CONFIG, end=whole[place])
    cut = whole[: whole.index(whole[place])]
    for name, mode in modes(ending).items():
        answer = mode.answer(prompts_for(ending, 1)[0])
        assert answer.ids == cut, name
        assert answer.tokens == len(cut) + 1, name
        if name in ("plain", "speculative") and answer.rounds:
            gained = sum(1 + (one.accepted or 0) - one.beyond for one in answer.rounds)
            assert gained == answer.round_tokens


@pytest.mark.parametrize("draft", ["auto", "ngram"])
def test_without_a_draft_nothing_is_guessed_and_nothing_is_forgotten_of_drafts(draft: str) -> None:
    config = replace(CONFIG, draft=draft, context=LlmConfig().context)
    llm = speculative(config)
    plain = without_draft(llm)

    def drafted(engine: SpeculativeLlm) -> int:
        items = engine.conversation().reply("What is the capital of Australia?", 0)
        return sum(one.drafted for one in items if isinstance(one, TokenBurst))

    assert drafted(llm) > 0
    known = pickle.dumps(llm._policy)
    assert drafted(plain) == 0
    assert pickle.dumps(llm._policy) == known
