"""What is said, thought and called in a reply from elsewhere, and how much of it is thought."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.remote.chatstream import (
    Calling,
    End,
    Piece,
    PromptUsage,
    StreamedCall,
    Text,
    Thought,
)
from voiceloop.llm.remote.remote import Incoming
from voiceloop.llm.text.leaks import Leaks
from voiceloop.llm.text.parts import THOUGHTS, ReplyPart

pytestmark = pytest.mark.pure


def come(*pieces: Piece, thinking: bool = False) -> tuple[str, Incoming]:
    """What is said in the end."""
    incoming = Incoming(thinking=thinking)
    found = [part for piece in pieces for part in incoming.push(piece)]
    found += incoming.finish()
    said = (part.text for part in found if isinstance(part, ReplyPart) and part.spoken)
    return "".join(said), incoming


@given(st.integers(1, 60), st.sampled_from(["field", *THOUGHTS]))
def test_thoughts_count_apart_wherever_they_stand(words: int, begin: str) -> None:
    thought = [f"hm{k} " for k in range(words)]
    if begin == "field":
        pieces: list[Piece] = [*map(Thought, thought), Text("It is noon.")]
    else:
        pieces = [Text(text) for text in (begin, *thought, THOUGHTS[begin], "It is noon.")]
    said, incoming = come(*pieces, End(cut=False))
    assert said == "It is noon."
    assert (incoming.thought, incoming.lone) == (words, False)


def test_what_stands_between_marks_of_a_response_is_said() -> None:
    thought = "<|START_THINKING|>They greet me.<|END_THINKING|>"
    answer = "<|START_RESPONSE|>Good day.<|END_RESPONSE|>"
    leaks = Leaks()
    text = leaks.push(thought + answer) + leaks.finish()
    assert come(Text(text), End(cut=False))[0] == "Good day."


def test_what_the_server_tells_of_thoughts_counts_too() -> None:
    assert come(End(cut=True), PromptUsage(5, thought=64))[1].thought == 64
    assert come(Thought("a b"), PromptUsage(5, thought=1))[1].thought == 2


def test_nothing_is_silent_without_end() -> None:
    for piece in (Thought(), Thought("x" * 80), Text("<tool_call>" + "x" * 80)):
        incoming = Incoming()
        for _ in range(100):
            incoming.push(piece)
        assert incoming.silence >= 100
    incoming = Incoming()
    for _ in range(100):
        incoming.push(Calling())
        incoming.push(Text("Well, so it is. "))
    assert incoming.silence == 0


@pytest.mark.parametrize("end", sorted(set(THOUGHTS.values())))
def test_an_end_that_stands_alone_is_noticed_where_a_thought_was_said(end: str) -> None:
    for pieces in ((f"I should answer. {end}Noon.",), ("I should", " answer. ", end, "\n\nNoon.")):
        assert come(*map(Text, pieces))[1].lone
    for pieces in (
        (f"{end}\n\nNoon.",),
        ("\n", end, "Noon."),
        (f"<think>I should answer.{end}Noon.",),
        ("<think>I should", f" answer.{end}", "Noon."),
        ("Noon.",),
    ):
        assert not come(*map(Text, pieces))[1].lone
        assert come(*map(Text, pieces))[0].strip() == "Noon."


@given(st.lists(st.integers(0, 30), max_size=5))
def test_a_reply_that_is_taken_for_a_thought_is_said_if_it_was_none(cuts: list[int]) -> None:
    for text, said in (
        ("I should answer.</think>Noon.", "Noon."),
        ("<think>I should answer.</think>Noon.", "Noon."),
        ("It is noon, as it seems.", "It is noon, as it seems."),
        ("It is noon.<|im_end|>user", "It is noon."),
    ):
        at = [0, *sorted(cuts), len(text)]
        pieces = [Text(text[a:b]) for a, b in pairwise(at)]
        assert come(*pieces, End(cut=False), thinking=True)[0] == said
    assert come(Text("I should"), End(cut=True), thinking=True)[0] == ""
    assert come(Text("I should"), End(cut=False, filtered=True), thinking=True)[0] == ""


def test_a_reply_ends_where_its_turn_does_and_calls_pass() -> None:
    said, incoming = come(Text("Noon.<|im_end|>"), Text("\nuser\n"))
    assert said == "Noon." and incoming.over
    call = StreamedCall("a", "clock", "{}")
    assert list(Incoming().push(call)) == [call]
