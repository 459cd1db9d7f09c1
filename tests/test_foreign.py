"""JSON that someone else wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.foreign import parsed

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
