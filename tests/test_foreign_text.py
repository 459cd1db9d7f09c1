"""Texts of strangers, such as clients, tools, servers and pages. Reading one takes work in
proportion to its length, whatever it repeats, leaves open or nests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from time import thread_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from voiceloop.dialogue.consent import question
from voiceloop.errors import VoiceloopError
from voiceloop.languages.en import ENGLISH
from voiceloop.llm.remote.errors import error_in
from voiceloop.llm.text import calls
from voiceloop.llm.text.leaks import Leaks
from voiceloop.llm.text.messages import least_of_opening
from voiceloop.llm.text.parts import Parts
from voiceloop.skills.answer import answer
from voiceloop.skills.claims import ClaimGuard
from voiceloop.skills.known import SkillContext
from voiceloop.terminal import printable
from voiceloop.tools import results
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.tts.markup import plain
from voiceloop.types import TokenBurst, Tool
from voiceloop.wire.parsing import parse_object

pytestmark = [pytest.mark.pure, pytest.mark.slow]

SIZE = 100_000
MOST_S = 20.0
"""Seconds of processor time. What is linear takes two at most, and what is quadratic minutes."""
PAIRS = [
    ("<|im_", "end|>"),
    ("[|a", "|]"),
    ("</s>", ""),
    ("<think>", "</think>"),
    ("<tool_call>", "</tool_call>"),
    ('{"a":', "}"),
    ('[{"name":"f","arguments":{', "}}]"),
    ('```json\n{"', "\n```"),
    ('"', "\\"),
    ("yes ", "please "),
    ("1 ", "1,"),
    ("a", "://"),
    (" ", "|"),
    ("<", ">"),
    ("\n", " "),
]


def streamed(parser: Leaks | Parts, text: str) -> None:
    for at in range(0, len(text), 4):
        parser.push(text[at : at + 4])
    parser.finish()


def refused(text: str) -> None:
    with pytest.raises(VoiceloopError):
        parse_object(text)


READERS: dict[str, Callable[[str], object]] = {
    "a result of a tool": results.data,
    "an error of a tool": results.error,
    "a text without steering": results.harmless,
    "leaked tokens": lambda text: streamed(Leaks(), text),
    "leaked tokens at once": lambda text: Leaks().push(text),
    "claims": lambda text: ClaimGuard("Do it", "en").push(TokenBurst(0, (0,), text)),
    "parts": lambda text: streamed(Parts(), text),
    "parts at once": lambda text: Parts().push(text),
    "calls": calls.read,
    "clauses": lambda text: ClauseCutter(0, ENGLISH).feed(TokenBurst(0, (0,), text[: SIZE // 4])),
    "consent": ENGLISH.agrees,
    "a question": lambda text: question(text, {"a": text, text: 1}, ENGLISH),
    "a request": lambda text: answer(text, "en", SkillContext(datetime(2026, 11, 26, tzinfo=UTC))),
    "a message": refused,
    "a complaint": lambda text: error_in({"error": {"message": text}}),
    "a schema": lambda text: least_of_opening("", [Tool("a", text, {"a": [text, {text: text}]})]),
    "a line": printable,
    "written words": plain,
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@settings(max_examples=6, deadline=None)
@example(pair=("a", "://"), kind="unended")
@example(pair=(" ", "|"), kind="unended")
@example(pair=("\n", " "), kind="unended")
@example(pair=('{"a ":', "}"), kind="unended")
@given(pair=st.sampled_from(PAIRS), kind=st.sampled_from(("repeated", "unended", "nested")))
def test_reading_takes_linear_work(
    reader: Callable[[str], object], pair: tuple[str, str], kind: str
) -> None:
    opening, closing = pair
    count = SIZE // (len(opening) + len(closing))
    text = {
        "repeated": (opening + closing) * count,
        "unended": opening * (SIZE // len(opening)),
        "nested": opening * count + closing * count,
    }[kind]
    begun = thread_time()
    reader(text)
    assert thread_time() - begun < MOST_S


@pytest.mark.parametrize("text", ["ab ", "\u00b0", "timer. "])
def test_a_long_text_is_no_request_whatever_it_says(text: str) -> None:
    begun = thread_time()
    known = SkillContext(datetime(2026, 11, 26, tzinfo=UTC))
    assert answer("Set a timer for one minute. " + text * 2_000_000, "en", known) is None
    assert thread_time() - begun < MOST_S / 10
