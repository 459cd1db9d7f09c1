"""Names of tools that servers accept, and calls, however a server crumbles and numbers them."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.remote.tool_calls import ToolCallDeltas, accepted

pytestmark = pytest.mark.pure

BARE = object()


def delta(
    index: object = BARE, own: object = BARE, name: object = BARE, arguments: object = BARE
) -> dict[str, Any]:
    """Only what is given is there."""
    function = {"name": name, "arguments": arguments}
    told = {"index": index, "id": own}
    found = {key: value for key, value in told.items() if value is not BARE}
    function = {key: value for key, value in function.items() if value is not BARE}
    return found | ({"function": function} if function else {})


def gathered(*deltas: object) -> list[tuple[str, str, str]]:
    every = ToolCallDeltas()
    for one in deltas:
        every.gather([one])
    return [(call.id, call.name, call.arguments) for call in every.calls()]


CITY = '{"city": "Rome", "days": [1, 2]}'


@given(
    st.lists(st.integers(0, len(CITY)), max_size=6),
    st.sampled_from(["index", "none", "null", "rising"]),
    st.sampled_from(["first", "each", "never"]),
    st.sampled_from(["first", "each", "blank"]),
    st.booleans(),
)
def test_one_call_is_one_call_whoever_crumbles_it(
    cuts: list[int], numbered: str, identified: str, named: str, summed: bool
) -> None:
    if numbered == "rising" and identified != "each":
        numbered = "index"  # nothing else would tell that it is the same
    at = [0, *sorted(cuts), len(CITY)]
    pieces = [CITY[a:b] for a, b in pairwise(at)]
    deltas = list[object]()
    for k, piece in enumerate(pieces):
        index = {"index": 0, "none": BARE, "null": None, "rising": k}[numbered]
        own = "a1" if identified == "each" or (identified == "first" and k == 0) else BARE
        blank = "" if named == "blank" else BARE
        name = "weather" if named == "each" or k == 0 else blank
        deltas.append(delta(index, own, name, piece))
    if summed and identified != "never":
        deltas.append(delta(0, "a1", "weather", json.dumps(CITY)))
        expected = json.dumps(CITY)
    else:
        expected = CITY
    assert gathered(*deltas) == [("" if identified == "never" else "a1", "weather", expected)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (delta(0, "a", "f", '{"x": 1}'), delta(1, "b", "f", '{"x": 2}')),
        (delta(0, "a", "f", '{"x": 1}'), delta(0, "b", "f", '{"x": 2}')),
        (delta(BARE, "a", "f", '{"x": 1}'), delta(BARE, "b", "f", '{"x": 2}')),
        (delta(0, BARE, "f", '{"x": 1}'), delta(0, BARE, "f", '{"x": 2}')),
        (delta(0, BARE, "f", ""), delta(0, BARE, "g", "")),
        (delta(0, "", "f", "{}"), delta(1, "", "g", "{}")),
        (delta(0, "a", "f", '{"x": 1}'), delta(1, "a", "g", '{"x": 2}')),
    ],
)
def test_two_calls_are_two_calls(first: dict[str, Any], second: dict[str, Any]) -> None:
    found = gathered(first, second)
    assert [(name, arguments) for _, name, arguments in found] == [
        (one["function"]["name"], one["function"]["arguments"]) for one in (first, second)
    ]


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        # One id under another index, and then that index alone.
        (
            [delta(0, "x", "f", ""), delta(1, "x", "f", '{"a"'), delta(1, BARE, BARE, ": 1}")],
            [("x", "f", '{"a": 1}')],
        ),
        ([delta(0, "x", BARE, '{"a"'), delta(0, BARE, "f", ": 1}")], [("x", "f", '{"a": 1}')]),
        ([delta(0, "x", "get_", ""), delta(0, BARE, "time", "{}")], [("x", "get_time", "{}")]),
        ([delta(0, "x", "f", "{}"), delta(0, BARE, BARE, '{"a": 1}')], [("x", "f", '{"a": 1}')]),
        ([delta(0, "x", "f", '{"a": 1}'), delta(0, BARE, BARE, "")], [("x", "f", '{"a": 1}')]),
        ([delta(0, "x", "f", '{"a"'), delta(0, "y", BARE, ": 1}")], [("x", "f", '{"a": 1}')]),
        ([delta(0, 7, "f", {"a": 1})], [("7", "f", '{"a": 1}')]),
        ([delta(0, None, None, None), None], [("", "", "")]),
        ([delta([1], {"a": 1}, "f", "{}")], [("", "f", "{}")]),
    ],
)
def test_crumbs_belong_together_by_their_ids(deltas: list[object], expected: list[object]) -> None:
    assert gathered(*deltas) == expected


def test_a_call_may_stand_where_a_list_of_them_should() -> None:
    every = ToolCallDeltas()
    every.gather(delta(0, "a", "f", "{}"))
    assert [call.name for call in every.calls()] == ["f"]


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
