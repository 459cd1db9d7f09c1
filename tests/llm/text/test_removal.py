"""Removing names from text that a stranger wrote: nothing is left over, whatever is joined."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.text.leaks import LONGEST, TOKEN, without

pytestmark = pytest.mark.pure
NAMES = ("<|im_end|>", "<|im_start|>", "</s>", "ab", "a")
PATTERN = re.compile("|".join(map(re.escape, sorted(NAMES, key=len, reverse=True))))
PIECES = ("<|im_", "end|>", "start|>", "</", "s>", "<|im_end|>", "a", "b", "x", " ", "<|", "|>")


def repeatedly(pattern: re.Pattern[str], text: str) -> str:
    """The slow way: remove until nothing changes."""
    while (shorter := pattern.sub("", text, count=1)) != text:
        text = shorter
    return text


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_name_is_left_over(text: str) -> None:
    left = without(PATTERN, text, 12)
    assert not PATTERN.search(left)
    assert "ab" in text or "a" in text or left == repeatedly(PATTERN, text)


@given(st.lists(st.sampled_from(("<|x", "|>", "[|a", "|]", "</s", ">", "tool", " ")), max_size=30))
def test_no_token_is_left_over(pieces: list[str]) -> None:
    text = "".join(pieces)
    left = without(TOKEN, text, LONGEST)
    assert not TOKEN.search(left) and left == repeatedly(TOKEN, text)


@pytest.mark.parametrize("n", [1000, 100_000])
def test_nested_names_take_linear_work(n: int) -> None:
    # Nothing is timed: with a pass for each level the larger one would take minutes.
    assert without(PATTERN, "<|im_" * n + "end|>" * n, 12) == ""
    assert without(TOKEN, "[|x" * n + "|]" * n, LONGEST) == ""
    assert without(PATTERN, "a" * n, 12) == ""
    assert without(PATTERN, "x" * n, 12) == "x" * n
