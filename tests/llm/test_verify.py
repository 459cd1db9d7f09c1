"""Verification: whatever was drafted, the tokens are those that the target chooses."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.rules.verify import coupled

pytestmark = pytest.mark.pure


@given(st.lists(st.integers(0, 2), max_size=8), st.data())
def test_exactly_the_longest_common_beginning_is_coupled(x: list[int], data: st.DataObject) -> None:
    rows = len(x) + 1
    chosen = data.draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    scores = F.one_hot(torch.tensor(chosen), 3).double()
    n, tokens = coupled(torch.tensor(x, dtype=torch.long), scores, None)
    accepted = int(n)
    assert tokens.tolist() == chosen
    assert x[:accepted] == chosen[:accepted]
    assert accepted == len(x) or x[accepted] != chosen[accepted]
