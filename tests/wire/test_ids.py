"""Ids: all of one length, and no two the same."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.wire.items import LENGTH, maker

pytestmark = pytest.mark.pure


@given(st.integers(), st.sampled_from(["event", "item", "resp", "conv", "sess", "call"]))
def test_an_id_has_its_kind_and_always_the_same_length(seed: int, kind: str) -> None:
    new_id = maker(Random(seed))
    made = [new_id(kind) for _ in range(50)]
    assert all(one.startswith(f"{kind}_") and len(one) == LENGTH == 24 for one in made)
    assert all(one.isascii() and one.isprintable() for one in made)
    assert len(set(made)) == 50
    assert made[0] == maker(Random(seed))(kind)
