"""JSON that someone else wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.foreign import MOST_LEVELS, parsed
from voiceloop.llm.text import calls

pytestmark = pytest.mark.pure


@given(st.text())
def test_it_is_read_as_python_does_or_it_is_a_value_error(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"\w"):
            parsed(text)
        return
    assert repr(parsed(text)) == repr(expected)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_what_is_nested_too_deep_is_a_value_error(opening: str) -> None:
    with pytest.raises(ValueError, match="too deep"):
        parsed(opening * 100_000)


@pytest.mark.parametrize("call", [False, True])
def test_what_was_read_can_be_written_with_less_of_the_stack(call: bool) -> None:
    """Arguments of a call are read in the same way."""

    def written(frames: int, value: object) -> str:
        return written(frames - 1, value) if frames else json.dumps(value, sort_keys=True)

    for levels in range(1, 1200, 9):
        text = f'{{"a": {"[" * levels}{"]" * levels}}}'
        try:
            value = calls.written("f", text).arguments if call else parsed(text)
        except ValueError:
            assert levels >= MOST_LEVELS
        else:
            assert written(50, value)
