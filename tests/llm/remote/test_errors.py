"""What servers say went wrong, and what they name besides."""

from __future__ import annotations

import pytest

from voiceloop.llm.remote.errors import error_in, refused
from voiceloop.llm.remote.servers import address

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"message": "too\n long", "code": 400}}, "too long"),
        ({"error": "gone"}, "gone"),
        ({"detail": [{"msg": "bad field", "loc": ["body"]}]}, "bad field"),
        ({"message": "no"}, "no"),
        ([{"error": {"message": "listed"}}], "listed"),
        ({"error": {"code": 5, "description": "", "reason": "no room"}}, "no room"),
        ({"title": "Bad request", "details": [{"text": "no seed"}]}, "no seed"),
        *(({key: "gone"}, "gone") for key in ("error_msg", "error_message", "errorMessage")),
        ({"error_description": "gone"}, "gone"),
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


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "This model's maximum context length is 2048 tokens."}},
        {"error": {"code": 400, "message": "the request exceeds the available context size"}},
        {"message": "The input (9000 tokens) is longer than the model's context length"},
        {"error": {"message": "prompt is too long: 9 tokens"}},
        {"message": "context length exceeded"},
        {"object": "error", "message": "maximum context length is 9 tokens", "code": 400},
        {"error": {"code": "context_length_exceeded", "message": "Please shorten it."}},
        {"type": "exceed_context_size_error", "message": "no room"},
        {"error": {"message": "Input validation error: inputs tokens must be <= 4096"}},
        {"error": {"message": "The input token count (9) exceeds the maximum number of tokens"}},
        {"error": {"message": "Please reduce the length of the messages."}},
    ],
)
@pytest.mark.parametrize("status", [None, 400, 413, 500])
def test_a_full_context_is_known_whichever_way_it_is_told(body: object, status: int | None) -> None:
    assert refused(address("http://x/v1", {}), status, error_in(body)).kind == "too_long"
