"""A tokenizer read without transformers says what transformers' own says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from tests.llm.conftest import CORPUS, Workshop
from voiceloop.bundled import bundled
from voiceloop.llm.model.tokens import Tokenizer, read_tokenizer

pytestmark = pytest.mark.models

STARTER = bundled("models/starter/llm-target")


@pytest.fixture(scope="module")
def pair() -> tuple[Tokenizer, Any]:
    """The starter's, straight and through transformers."""
    straight = read_tokenizer(STARTER, "llama")
    assert straight is not None
    return straight, AutoTokenizer.from_pretrained(str(STARTER))


texts = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from([*CORPUS, "<|im_start|>", "<|im_end|>", "\n", " ", "<think>", "10"])
    ).map("".join),
)


@given(texts, st.booleans())
def test_texts_are_the_same_tokens_and_back(
    pair: tuple[Tokenizer, Any], text: str, skip: bool
) -> None:
    straight, theirs = pair
    ids = straight.encode(text, add_special_tokens=False, verbose=False)
    assert ids == theirs.encode(text, add_special_tokens=False, verbose=False)
    options = {"skip_special_tokens": skip, "clean_up_tokenization_spaces": False}
    assert straight.decode(ids, **options) == theirs.decode(ids, **options)


def test_special_tokens_and_vocabulary_are_the_same(pair: tuple[Tokenizer, Any]) -> None:
    straight, theirs = pair
    assert straight.get_vocab() == theirs.get_vocab()
    assert straight.eos_token_id == theirs.eos_token_id is not None
    assert straight.chat_template == theirs.chat_template
    described = {index: repr(token) for index, token in theirs.added_tokens_decoder.items()}
    found = {index: repr(token) for index, token in straight.added_tokens_decoder.items()}
    assert found == described


@pytest.mark.parametrize(
    "changes",
    [
        {"tokenizer_class": "GPT2Tokenizer"},
        {"tokenizer_class": None},
        {"auto_map": {"AutoTokenizer": ["its.Own", None]}},
        {"split_special_tokens": True},
        {"bos_token": "<|not there|>"},
        {"image_token": "<|not there|>"},
        {"extra_special_tokens": ["<|not there|>"]},
        {"extra_special_tokens": {"image_token": "<|not there|>"}},
        {"added_tokens_decoder": {"2": {"content": "<|im_end|>", "special": False}}},
        {"added_tokens_decoder": {"9": {"content": "<|more|>", "special": True}}},
        {"chat_template": [{"name": "default", "template": "{{ messages }}"}]},
    ],
    ids=json.dumps,
)
def test_what_transformers_would_change_is_left_to_it(
    workshop: Workshop, tmp_path: Path, changes: dict[str, Any]
) -> None:
    workshop.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    file = tmp_path / "tokenizer_config.json"
    config = json.loads(file.read_text())
    assert read_tokenizer(tmp_path, "llama") is not None
    assert read_tokenizer(tmp_path, "qwen2") is None, "it makes one of its own of that"
    file.write_text(json.dumps(config | changes))
    assert read_tokenizer(tmp_path, "llama") is None


def test_tokens_that_older_files_add_are_left_to_transformers(
    workshop: Workshop, tmp_path: Path
) -> None:
    workshop.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "added_tokens.json").write_text('{"<|more|>": 400}')
    assert read_tokenizer(tmp_path, "llama") is None
    (tmp_path / "added_tokens.json").unlink()
    (tmp_path / "tokenizer.json").unlink()
    assert read_tokenizer(tmp_path, "llama") is None
