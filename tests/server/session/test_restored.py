"""A conversation that was had before: its client creates the items of it, and goes on."""

from __future__ import annotations

import pytest

from tests.server.session.test_calls import Client, client
from tests.server.session.test_skills import ask, dialogue, text
from tests.server.session.test_skills import client as plain
from voiceloop.types import Past

pytestmark = pytest.mark.virtual

ROLES = {"u": ("user", "input_text"), "a": ("assistant", "output_text")}


def restore(one: Client, items: str, **place: object) -> None:
    """Create messages, each a letter for who said it and what was said: `u:Hi a:Hello`."""
    for item in items.split():
        who, said = item.split(":")
        role, kind = ROLES[who]
        message = {"type": "message", "role": role, "content": [{"type": kind, "text": said}]}
        one.send("conversation.item.create", item=message, **place)


@pytest.mark.parametrize(
    ("items", "asked", "past"),
    [
        ("u:Hi a:Yes", "Hello", [("Hi", "Yes")]),
        ("u:Hi a:Yes u:Why a:Because", "Hello", [("Hi", "Yes"), ("Why", "Because")]),
        ("u:Hi u:You a:Yes", "Hello", [("Hi You", "Yes")]),
        ("a:Yes u:Hi", "Hi\nHello", [("", "Yes")]),
        ("u:Hi a:Yes u:Why", "Why\nHello", [("Hi", "Yes")]),
    ],
)
async def test_what_was_answered_before_is_not_asked_again(
    items: str, asked: str, past: list[tuple[str, str]]
) -> None:
    async with client() as (one, llm):
        restore(one, items)
        one.write("Hello")
        await one.respond()
        assert [told for name, told in llm.log if name == "reply"] == [asked]
        (_, seen) = [told for name, told in llm.log if name == "rewrite"][-1]  # type: ignore[misc]
        assert list(seen) == [Past(said, (replied,)) for said, replied in past]


@pytest.mark.parametrize(
    ("items", "repeated", "recalled"),
    [
        ("u:Hi? a:Yes.", "Yes.", "You asked: Hi?"),
        ("u:Hi? a:Yes. u:Why? a:Because.", "Because.", "You asked: Why?"),
        ("a:Welcome.", "Welcome.", "You have not asked me anything yet."),
    ],
)
async def test_rules_know_what_was_said_before(items: str, repeated: str, recalled: str) -> None:
    own, _ = dialogue()
    async with plain(own) as one:
        restore(one, items)
        assert text(await ask(one, "Say that again.")) == repeated
    own, _ = dialogue()
    async with plain(own) as one:
        restore(one, items)
        assert text(await ask(one, "What did I ask?")) == recalled
