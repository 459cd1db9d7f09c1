"""Nothing private is left in a text, wherever it stands there, and the rest stays as it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.doctor.findings import Finding, Veil

pytestmark = pytest.mark.pure

HOME, USER, HOST = "/home/annabel", "annabel", "annabels-laptop"
KEY = "sk-proj-9f8e7d6c5b4a3f2e1d0c9b8a7f6e5d4c"
ENVIRON = {
    "HOME": HOME,
    "PWD": f"{HOME}/project",
    "OPENAI_API_KEY": "short-key",
    "VOICELOOP_MODELS": "/data/annabel/models/",
    "HTTPS_PROXY": "http://joe:hunter2@proxy.corp.example:3128",
    "LANG": "en_US.UTF-8",
    "SHLVL": "1",
    "PYTHON_VERSION": "3.11.9",
}
VEIL = Veil(ENVIRON, {HOME: "~", USER: "USER", HOST: "HOST", "": "USER"})
PRIVATE = {
    HOME: "~",
    f"{HOME}/models": "~/models",
    f"{HOME}/project/a.toml": "$PWD/a.toml",
    USER.upper(): "USER",
    f"/mnt/{USER}_models": "/mnt/USER_models",
    HOST: "HOST",
    "short-key": "$OPENAI_API_KEY",
    "/data/annabel/models": "$VOICELOOP_MODELS",
    "proxy.corp.example": "$HTTPS_PROXY",
    ENVIRON["HTTPS_PROXY"]: "$HTTPS_PROXY",
    "https://someone:secret@example.org/v1": "https://…@example.org/v1",
    KEY: "sk-proj-…",
}
"""What is private, and what is shown instead."""
PUBLIC = (
    "voiceloop 0.1.0, Python 3.11.9, Linux x86_64",
    "voiceloop models pull qwen2.5-1.5b-instruct, then --preset small",
    "piper en_US-joe-medium: 0.12 s for a second of sound",
    "cannot read voiceloop.toml: Expected '=' (at line 1, column 9)",
    "/home/annabella/x and annabelle: other people",
)

words = st.text(st.characters(codec="utf-8", exclude_categories=["L", "N", "Mn"]), max_size=8)


@given(words, st.sampled_from(sorted(PRIVATE)), words)
def test_what_is_private_is_replaced_wherever_it_stands(
    before: str, private: str, after: str
) -> None:
    shown = VEIL.over(f"{before}{private}{after}")
    for secret in (*PRIVATE, USER, "hunter2", "secret@", KEY[10:]):
        assert not re.search(rf"(?<![a-z]){re.escape(secret)}(?![a-z])", shown, re.IGNORECASE)


@pytest.mark.parametrize(("private", "shown"), PRIVATE.items())
def test_it_is_told_what_stood_there(private: str, shown: str) -> None:
    assert VEIL.over(f"cannot open '{private}': no") == f"cannot open '{shown}': no"


@pytest.mark.parametrize("text", PUBLIC)
def test_what_is_not_private_stays(text: str) -> None:
    assert VEIL.over(text) == text


@pytest.mark.parametrize("name", ["voiceloop", "root", "localhost", "Voiceloop"])
def test_a_name_that_tells_nothing_does_not_spoil_a_command(name: str) -> None:
    veil = Veil({"X_KEY": "abc"}, {name: "USER", "/": "~"})
    text = "voiceloop serve, as root, at http://localhost:8765/abc"
    assert veil.over(text) == text


def test_both_texts_of_a_finding_are_covered_and_each_is_one_line() -> None:
    found = VEIL.over_all(Finding("x", "broken", f"a\n{HOME}\n", f"see\r\n{KEY}", {"s": 1.0}))
    assert found == Finding("x", "broken", "a ~", "see sk-proj-…", {"s": 1.0})
