"""Tools have names that servers accept, and each keeps its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.remote.toolnames import accepted

pytestmark = pytest.mark.pure

NAMES = st.text(alphabet="ab._- é😀", max_size=4) | st.text(alphabet="a.", min_size=60, max_size=70)


@given(st.lists(NAMES, max_size=30))
def test_names_fit_and_none_is_taken_for_another(names: list[str]) -> None:
    sent = accepted(names)
    assert sent.keys() == set(names)
    assert len(set(sent.values())) == len(sent)
    for name, other in sent.items():
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", other)
        if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
            assert other == name


def test_many_names_that_become_the_same_are_numbered() -> None:
    sent = accepted(["a.b", "a_b", "a/b", "." * 70, "", "a" * 65, "a" * 64, "a" * 66])
    assert (sent["a_b"], sent["a.b"], sent["a/b"]) == ("a_b", "a_b_2", "a_b_3")
    assert len(set(sent.values())) == 8
