"""What may follow the last word of a user's turn, in templates of many kinds."""

from __future__ import annotations

import pytest

from tests.llm.conftest import TEMPLATE, build_tokenizer
from voiceloop.llm.text.template import ChatTemplate

pytestmark = pytest.mark.models

MARKS = {".", "?", "!"}
TURN = "{% for message in messages %}{{ message.role + ': ' + message.content + END }}{% endfor %}"
ASK = "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"


def ends(template: str) -> set[str]:
    tokenizer = build_tokenizer(template)
    found = ChatTemplate(tokenizer, "a model").ends
    assert list(found) == sorted(set(found))
    return {str(tokenizer.decode([token])) for token in found}


def test_a_turn_ends_with_the_token_that_closes_it_or_with_a_mark() -> None:
    assert ends(TEMPLATE) == {"<|im_end|>", *MARKS}


@pytest.mark.parametrize("end", ["\\n<|im_end|>\\n", " <|im_end|>"])
def test_white_space_may_stand_before_the_token_that_closes_it(end: str) -> None:
    first = "\n" if end.startswith("\\n") else " "
    assert ends((TURN + ASK).replace("END", f"'{end}'")) == {first, "<|im_end|>", *MARKS}


def test_a_turn_may_be_closed_by_no_token_of_its_own() -> None:
    assert ends((TURN + ASK).replace("END", "'\\n'")) == {"\n", *MARKS}


def test_marks_that_take_several_tokens_begin_with_none_that_counts() -> None:
    """The tokenizer spells these byte by byte, and its bytes begin other letters too."""
    tokenizer = build_tokenizer()
    first = tokenizer.encode("。")[0]
    assert len(tokenizer.encode("。")) > 1
    assert first not in ChatTemplate(tokenizer, "a model").ends


def test_a_mark_and_the_line_breaks_after_it_may_be_one_token() -> None:
    words = build_tokenizer()
    plain = set(ChatTemplate(words, "a model").ends)
    words.add_tokens(["?\n", ".\n\n", "?!"])
    more = set(ChatTemplate(words, "a model").ends) - plain
    found = {str(words.decode([token])) for token in more}
    assert found == {"?\n", ".\n\n"}
