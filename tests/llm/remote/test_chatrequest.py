"""What is found out about a server by what it refuses, how it is asked from then on, and names of
tools that servers accept."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.remote.chatrequest import Quirks, accepted
from voiceloop.llm.remote.errors import ReportedError, error_in
from voiceloop.llm.text.messages import BEGAN, alternating, without_system

pytestmark = pytest.mark.pure

ASKED: dict[str, Any] = {
    "model": "small",
    "messages": [{"role": "user", "content": "Hello"}],
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_tokens": 100,
    "temperature": 0.7,
    "reasoning_effort": "none",
    "chat_template_kwargs": {"enable_thinking": False},
    "top_p": 0.9,
    "top_k": 5,
    "seed": 7,
    "stop": ["END"],
    "tools": [{"type": "function"}],
}


def refused(body: object) -> ReportedError:
    return error_in(body)


def openai(message: str, param: str | None = None) -> object:
    return {"error": {"message": message, "param": param, "code": "unsupported_parameter"}}


REFUSALS: list[tuple[object, str]] = [
    (openai("Unsupported value: 'temperature' does not support 0 with this model."), "temperature"),
    (openai("Only the default (1) is supported.", "temperature"), "temperature"),
    (openai("Unrecognized request argument supplied: stream_options"), "stream_options"),
    (openai("Unknown parameter: 'chat_template_kwargs'."), "chat_template_kwargs"),
    (openai("Argument not supported on this model: stop"), "stop"),
    (openai("Unsupported parameter: 'stop'", "stop"), "stop"),
    (openai("property 'seed' is unsupported"), "seed"),
    (openai('Invalid JSON payload received. Unknown name "top_k": Cannot find field.'), "top_k"),
    ({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, "seed"),
    ({"message": {"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs"}]}}, "top_k"),
    ({"detail": "Unexpected fields in the request: {'top_k'}"}, "top_k"),
    ({"error": "gemini does not support parameters: ['seed']"}, "seed"),
    ({"error": {"message": "registry/library/small does not support tools"}}, "tools"),
    ({"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice'}}, "tools"),
    ({"error": {"message": "No endpoints found that support tool use."}}, "tools"),
    ({"message": "reasoning_effort must be one of low, medium, high"}, "reasoning_effort"),
    (openai("`temperature` and `top_p` cannot both be specified"), "temperature"),
]


@pytest.mark.parametrize(("body", "name"), REFUSALS)
def test_a_parameter_that_is_refused_is_left_out(body: object, name: str) -> None:
    quirks = Quirks()
    told = quirks.learn(refused(body), quirks.fitted(ASKED))
    fitted = quirks.fitted(ASKED)
    assert fitted == {key: value for key, value in ASKED.items() if key != name}
    quiet = name in ("stream_options", "chat_template_kwargs", "reasoning_effort")
    assert told == ([] if quiet else [name])


def test_all_that_is_added_is_left_out_at_once() -> None:
    quirks = Quirks()
    body = {"detail": "Unexpected fields: {'top_k', 'chat_template_kwargs', 'reasoning_effort'}"}
    assert quirks.learn(refused(body), ASKED) == ["top_k"]
    assert quirks.left_out == {"top_k", "chat_template_kwargs", "reasoning_effort"}
    quirks = Quirks()
    quirks.learn(refused({"error": "invalid reasoning value: 'none'"}), ASKED)
    assert quirks.left_out == {"chat_template_kwargs", "reasoning_effort"}


def test_without_tools_nothing_has_to_be_called() -> None:
    asked = ASKED | {"tool_choice": "required", "parallel_tool_calls": False}
    quirks = Quirks(left_out={"tools"})
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(quirks.fitted(asked))
    assert "tools" in Quirks(left_out={"tool_choice"}).fitted(asked)


def test_the_longest_reply_goes_by_the_other_name_or_by_none() -> None:
    body = openai("'max_tokens' is not supported. Use 'max_completion_tokens'.", "max_tokens")
    quirks = Quirks()
    assert quirks.learn(refused(body), ASKED) == []
    fitted = quirks.fitted(ASKED)
    assert "max_tokens" not in fitted and fitted["max_completion_tokens"] == 100
    quirks.learn(refused(openai("unknown", "max_completion_tokens")), fitted)
    assert {"max_tokens", "max_completion_tokens"}.isdisjoint(quirks.fitted(ASKED))


@pytest.mark.parametrize(
    "said",
    [
        "it broke",
        "top_k is no field",
        "the model 'small' is not supported",
        "We could not stop in time",
        "the server must be restarted",
        "billing is required",
        "the stopwatch is not supported",
    ],
)
def test_other_refusals_change_nothing(said: str) -> None:
    asked = {name: value for name, value in ASKED.items() if name != "top_k"}
    quirks = Quirks()
    assert quirks.learn(ReportedError(said), asked) == []
    assert quirks.fitted(asked) == asked


def turns(*roles: str) -> list[dict[str, Any]]:
    names = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": names[role], "content": f"{role}{n}"} for n, role in enumerate(roles)]


@pytest.mark.parametrize(
    ("said", "roles", "becomes"),
    [
        ("System role not supported", "sua", "u:s0\n\nu1 a:a2"),
        ("Only user and assistant roles are supported!", "su", "u:s0\n\nu1"),
        ("Developer instruction is not enabled for this model", "su", "u:s0\n\nu1"),
        ("Unsupported value: 'messages[0].role' does not support 'system'", "su", "u:s0\n\nu1"),
        ("Input should be 'user' or 'assistant', role", "su", "u:s0\n\nu1"),
        ("Conversation roles must alternate user/assistant/…", "suu", "s:s0 u:u1\n\nu2"),
        ("roles must alternate between user and assistant", "uaau", "u:u0 a:a1\n\na2 u:u3"),
        ("After the system message, roles must alternate", "sau", f"s:s0\n\n{BEGAN} a1 u:u2"),
        ("two consecutive user messages", "uu", "u:u0\n\nu1"),
        ("The first message must be of the user", "au", f"s:{BEGAN} a0 u:u1"),
        # Where turns alternate, it is the system prompt that is one too many.
        ("Conversation roles must alternate user/assistant/…", "sua", "u:s0\n\nu1 a:a2"),
    ],
)
def test_roles_that_are_refused_are_merged(said: str, roles: str, becomes: str) -> None:
    quirks, asked = Quirks(), {"messages": turns(*roles)}
    assert quirks.learn(ReportedError(said), asked) == []
    messages = quirks.fitted(asked)["messages"]
    shown = " ".join(f"{one['role'][0]}:{one['content']}" for one in messages)
    assert shown == becomes


@given(st.lists(st.sampled_from("ua"), min_size=1, max_size=9), st.booleans())
def test_merged_turns_alternate_and_lose_no_word(roles: list[str], system: bool) -> None:
    messages = turns(*("s" * system), *roles)
    merged = without_system(alternating(messages))
    assert not any(one["role"] == "system" for one in merged)
    assert all(a["role"] != b["role"] for a, b in pairwise(merged))
    assert merged[0]["role"] == "user"
    text = "\n".join(one["content"] for one in merged)
    assert all(one["content"] in text for one in messages)
    assert alternating(alternating(messages)) == alternating(messages)
    quirks, said = Quirks(), ReportedError("Conversation roles must alternate")
    asked = [quirks.fitted({"messages": messages})]
    for _ in range(3):
        quirks.learn(said, asked[-1])
        asked.append(quirks.fitted({"messages": messages}))
    assert asked[-1] == asked[-2], "it is not asked otherwise for ever"


def test_calls_keep_their_place_when_turns_are_merged() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]}
    back = {"role": "tool", "tool_call_id": "a", "content": "12:00"}
    before, after = turns("u", "u"), turns("a", "u")
    merged = alternating([*before, call, back, *after])
    assert merged[1:] == [call, back, *after]
    assert merged[0]["content"] == "u0\n\nu1"


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
