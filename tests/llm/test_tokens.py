"""A tokenizer read without transformers says what transformers' own says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateError
from transformers import AutoTokenizer

from tests.llm.conftest import CORPUS, Workshop
from voiceloop.bundled import bundled
from voiceloop.llm.tokens import Tokenizer, read_tokenizer

pytestmark = pytest.mark.models

STARTER = bundled("models/starter/llm-target")
TOOL = {
    "type": "function",
    "function": {"name": "now", "description": "<the time> & more", "parameters": {"é": [1]}},
}
DIALOGUES: list[list[dict[str, str]]] = [
    [{"role": "user", "content": "Hello!"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hello \n"}],
    [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": "<tool_call>\n{}\n</tool_call>"},
        {"role": "tool", "content": '{"time": "noon"}'},
    ],
]


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


def rendered(tokenizer: Any, turns: list[dict[str, str]], tools: Any) -> str:
    return tokenizer.apply_chat_template(
        turns, tools=tools, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )


EVERYTHING = """\
{%- for message in messages -%}
    {%- if message.role == 'nobody' -%}{{ raise_exception('no ' + message.role) }}{%- endif -%}
    {%- if loop.index > 2 -%}{%- break -%}{%- endif -%}
    {{ message.role }}: {{ message.content | trim }}{{ eos_token }}
{% endfor %}
{{ tools | tojson(indent=2) if tools else 'no tools' }} {{ strftime_now('%Y') | length }}
{{ bos_token is defined }} {{ documents is none }} {{ enable_thinking }}
    {% if add_generation_prompt %}
assistant:
    {% endif %}
"""
"""What templates use of what transformers gives them."""


@pytest.mark.parametrize("tools", [None, [TOOL]])
@pytest.mark.parametrize("turns", DIALOGUES, ids=len)
def test_dialogues_are_the_same_text(
    workshop: Workshop, pair: tuple[Tokenizer, Any], tmp_path: Path, turns: Any, tools: Any
) -> None:
    assert rendered(pair[0], turns, tools) == rendered(pair[1], turns, tools)
    workshop.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(EVERYTHING)
    straight = read_tokenizer(tmp_path, "llama")
    theirs = AutoTokenizer.from_pretrained(str(tmp_path))
    assert rendered(straight, turns, tools) == rendered(theirs, turns, tools)
    with pytest.raises(TemplateError, match="no nobody"):
        rendered(straight, [{"role": "nobody", "content": ""}], None)


def test_a_template_reaches_nothing_but_what_it_is_given(
    workshop: Workshop, tmp_path: Path
) -> None:
    workshop.tokenizer.save_pretrained(tmp_path)
    for hostile in (
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__globals__['datetime'] }}",
        "{{ messages.append('x') }}",
    ):
        (tmp_path / "chat_template.jinja").write_text(hostile)
        try:
            shown = rendered(read_tokenizer(tmp_path, "llama"), DIALOGUES[0], None)
        except TemplateError:
            continue
        assert shown == ""


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
        {"chat_template": "{% generation %}{{ messages }}{% endgeneration %}"},
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
