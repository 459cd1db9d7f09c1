"""What servers say went wrong, and what they name besides."""

from __future__ import annotations

import pytest

from voiceloop.llm.remote.errors import error_in

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"message": "too\n long", "code": 400}}, "too long"),
        ({"error": "gone"}, "gone"),
        ({"detail": [{"msg": "bad field", "loc": ["body"]}]}, "bad field"),
        ({"message": "no"}, "no"),
        ([{"error": {"message": "listed"}}], "listed"),
        ({"error": {"code": 5}}, ""),
        ({"errors": [{"message": "several"}]}, "several"),
        ({"object": "error", "message": {"detail": [{"msg": "nested"}]}}, "nested"),
        (None, ""),
        (7, ""),
        ([[["far"]]], ""),
    ],
)
def test_servers_complain_in_many_ways(body: object, told: str) -> None:
    assert error_in(body).said == told


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"param": "stop", "code": "unsupported"}}, "stop unsupported"),
        (
            {"detail": [{"loc": ["body", "seed"]}, {"loc": ["body", "top_k"]}]},
            "body seed body top_k",
        ),
        ({"message": {"detail": [{"loc": ["body", "seed"]}]}, "type": "bad"}, "body seed bad"),
        ({"error": {"param": None, "code": {"a": 1}}}, ""),
        ("text", ""),
    ],
)
def test_servers_name_what_they_refuse(body: object, told: str) -> None:
    assert error_in(body).named == told


def test_what_is_wrapped_without_end_says_nothing() -> None:
    body: object = "end"
    for _ in range(5000):
        body = {"error": [body]}
    assert error_in(body).said == error_in(body).named == ""
