"""Coupled verification: what stands is what the target would have said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.verify import coupled

pytestmark = pytest.mark.pure
tokens = st.integers(0, 2)


@given(st.lists(tokens, max_size=8), st.data())
def test_exactly_the_longest_common_beginning_stands(
    drafted: list[int], data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(tokens, min_size=len(drafted) + 1, max_size=len(drafted) + 1))
    accepted = coupled(drafted, chosen)
    assert drafted[:accepted] == chosen[:accepted]
    assert accepted == len(drafted) or drafted[accepted] != chosen[accepted]
