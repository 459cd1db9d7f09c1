"""What a model is known by: its weights and its template, and neither folder nor files."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest
import torch

from voiceloop.bundled import bundled
from voiceloop.llm.engine import speculative
from voiceloop.llm.model.loading import family, fingerprint, of_transformers
from voiceloop.llm.pair import STARTER
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.settings.config import LlmConfig

from .conftest import TEMPLATE, build_model, build_tokenizer

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def template() -> ChatTemplate:
    return ChatTemplate(build_tokenizer(), "a model")


def test_copies_in_another_type_are_the_same_model(template: ChatTemplate) -> None:
    single = build_model("llama", 340, dtype=torch.bfloat16)
    known = fingerprint(single, template)
    assert known == fingerprint(copy.deepcopy(single), template)
    assert known == fingerprint(copy.deepcopy(single).float(), template)
    assert known == fingerprint(single, ChatTemplate(build_tokenizer(), "its other name"))
    assert len(known) == 32


def test_other_weights_are_another_model(template: ChatTemplate) -> None:
    model = build_model("llama", 340)
    known = {fingerprint(model, template), fingerprint(build_model("llama", 340, seed=1), template)}
    for name, weight in model.named_parameters():
        changed = copy.deepcopy(model)
        with torch.no_grad():
            changed.get_parameter(name).copy_(weight * 1.01)  # what a little training does
        known.add(fingerprint(changed, template))
    assert len(known) == 2 + len(list(model.parameters()))


def test_another_template_is_another_model(template: ChatTemplate) -> None:
    model = build_model("llama", 340)
    other = build_tokenizer(TEMPLATE.replace("<|im_end|>\\n", "<|im_end|>"))
    assert fingerprint(model, template) != fingerprint(model, ChatTemplate(other, "a model"))


def test_models_of_the_same_sizes_and_tokens_are_a_family() -> None:
    words, model = build_tokenizer(), build_model("llama", 340, dtype=torch.bfloat16)
    known = family(of_transformers("a model", model, words))
    trained_on = build_model("llama", 340, seed=1)
    assert known == family(of_transformers("its other name", trained_on, words))
    other = build_tokenizer()
    other.add_tokens(["another"])
    assert known != family(of_transformers("a model", model, other))
    assert known != family(of_transformers("a model", build_model("qwen3", 340), words))


def test_the_starter_by_folder_is_calibrated_as_the_starter_is(tmp_path: Path) -> None:
    named = speculative(LlmConfig())
    copied = shutil.copytree(bundled(STARTER["target"]), tmp_path / "another name")
    placed = speculative(LlmConfig(target=str(copied)))
    assert named.fingerprint == placed.fingerprint
    assert named.calibrations == placed.calibrations
    assert named.calibrations["en"] is not None
