"""Calls of tools, however a server crumbles and numbers them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.remote.toolcrumbs import ToolCrumbs

pytestmark = pytest.mark.pure

BARE = object()


def crumb(
    index: object = BARE, own: object = BARE, name: object = BARE, arguments: object = BARE
) -> dict[str, Any]:
    """Only what is given is there."""
    function = {"name": name, "arguments": arguments}
    told = {"index": index, "id": own}
    found = {key: value for key, value in told.items() if value is not BARE}
    function = {key: value for key, value in function.items() if value is not BARE}
    return found | ({"function": function} if function else {})


def gathered(*crumbs: object) -> list[tuple[str, str, str]]:
    every = ToolCrumbs()
    for one in crumbs:
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
    crumbs = list[object]()
    for k, piece in enumerate(pieces):
        index = {"index": 0, "none": BARE, "null": None, "rising": k}[numbered]
        own = "a1" if identified == "each" or (identified == "first" and k == 0) else BARE
        blank = "" if named == "blank" else BARE
        name = "weather" if named == "each" or k == 0 else blank
        crumbs.append(crumb(index, own, name, piece))
    if summed and identified != "never":
        crumbs.append(crumb(0, "a1", "weather", json.dumps(CITY)))
        expected = json.dumps(CITY)
    else:
        expected = CITY
    assert gathered(*crumbs) == [("" if identified == "never" else "a1", "weather", expected)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (crumb(0, "a", "f", '{"x": 1}'), crumb(1, "b", "f", '{"x": 2}')),
        (crumb(0, "a", "f", '{"x": 1}'), crumb(0, "b", "f", '{"x": 2}')),
        (crumb(BARE, "a", "f", '{"x": 1}'), crumb(BARE, "b", "f", '{"x": 2}')),
        (crumb(0, BARE, "f", '{"x": 1}'), crumb(0, BARE, "f", '{"x": 2}')),
        (crumb(0, BARE, "f", ""), crumb(0, BARE, "g", "")),
        (crumb(0, "", "f", "{}"), crumb(1, "", "g", "{}")),
        (crumb(0, "a", "f", '{"x": 1}'), crumb(1, "a", "g", '{"x": 2}')),
    ],
)
def test_two_calls_are_two_calls(first: dict[str, Any], second: dict[str, Any]) -> None:
    found = gathered(first, second)
    assert [(name, arguments) for _, name, arguments in found] == [
        (one["function"]["name"], one["function"]["arguments"]) for one in (first, second)
    ]


@pytest.mark.parametrize(
    ("crumbs", "expected"),
    [
        # One id under another index, and then that index alone.
        (
            [crumb(0, "x", "f", ""), crumb(1, "x", "f", '{"a"'), crumb(1, BARE, BARE, ": 1}")],
            [("x", "f", '{"a": 1}')],
        ),
        ([crumb(0, "x", BARE, '{"a"'), crumb(0, BARE, "f", ": 1}")], [("x", "f", '{"a": 1}')]),
        ([crumb(0, "x", "get_", ""), crumb(0, BARE, "time", "{}")], [("x", "get_time", "{}")]),
        ([crumb(0, "x", "f", "{}"), crumb(0, BARE, BARE, '{"a": 1}')], [("x", "f", '{"a": 1}')]),
        ([crumb(0, "x", "f", '{"a": 1}'), crumb(0, BARE, BARE, "")], [("x", "f", '{"a": 1}')]),
        ([crumb(0, "x", "f", '{"a"'), crumb(0, "y", BARE, ": 1}")], [("x", "f", '{"a": 1}')]),
        ([crumb(0, 7, "f", {"a": 1})], [("7", "f", '{"a": 1}')]),
        ([crumb(0, None, None, None), None], [("", "", "")]),
        ([crumb([1], {"a": 1}, "f", "{}")], [("", "f", "{}")]),
    ],
)
def test_crumbs_belong_together_by_their_ids(crumbs: list[object], expected: list[object]) -> None:
    assert gathered(*crumbs) == expected


def test_a_call_may_stand_where_a_list_of_them_should() -> None:
    every = ToolCrumbs()
    every.gather(crumb(0, "a", "f", "{}"))
    assert [call.name for call in every.calls()] == ["f"]
