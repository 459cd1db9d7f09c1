"""Tokens of chat templates in what a server says are neither shown nor spoken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.text.leaks import Leaks
from voiceloop.llm.text.parts import MARKS

pytestmark = pytest.mark.pure


def left(*pieces: str) -> str:
    leaks = Leaks()
    said = [leaks.push(piece) for piece in pieces]
    return "".join([*said, leaks.finish()])


ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<turn|>"),
    *("<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<|eom_id|>", "[|endofturn|]"),  # noqa: RUF001
    *("<|user|>", "<|im_start|>", "<|start_header_id|>", "<start_of_turn>", "<｜User｜>", "[INST]"),  # noqa: RUF001
    *("<|eot|>", "<|end_of_role|>", "<|im_sep|>", "<end_of_utterance>", "<|header_end|>"),
)
SILENT = ("</s>", "<s>", "<bos>", "<eos>", "<pad>", "<|fim_pad|>", "<|reserved_7|>", "[gMASK]")
HEADS = (
    *("<|im_start|>assistant\n", "<start_of_turn>model\n", "<|assistant|>\n", "<｜Assistant｜>"),  # noqa: RUF001
    *("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|im_end|>\n<|im_start|>assistant\n"),
    *("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "[/INST] ", "<s>", "<|turn>model\n", "<bos>"),
    *("<|start_of_role|>assistant<|end_of_role|>", "[|assistant|]", "<|begin_of_text|>"),
)


@pytest.mark.parametrize("end", ENDS)
def test_a_reply_ends_where_its_turn_does(end: str) -> None:
    for more in ("", "\n", "\nassistant\nAnd more.", "user\n\nWho are you?"):
        assert left(f"It is noon.{end}{more}") == "It is noon."


@pytest.mark.parametrize("token", SILENT)
def test_what_ends_no_turn_is_left_out(token: str) -> None:
    assert left(f"It is {token}noon.{token}") == "It is noon."
    assert left(f"{token}It is noon.") == "It is noon."


@pytest.mark.parametrize("head", HEADS)
def test_who_speaks_is_not_said_at_the_beginning(head: str) -> None:
    assert left(f"{head}It is noon.") == "It is noon."
    assert left(head) == ""
    assert left(f"{head}As models go.") == "As models go."


@given(st.lists(st.integers(1, 12), max_size=20))
def test_a_thought_whose_marks_were_stripped_is_not_said(lengths: list[int]) -> None:
    thought = "analysisThe user greets. A greeting back will do.assistantfinal"
    for text, said in (
        (f"{thought}Hello there.", "Hello there."),
        ("analysis of it takes a while", "analysis of it takes a while"),
        ("an apple", "an apple"),
        ("analysisWithout an end", "analysisWithout an end"),
    ):
        pieces, at = list[str](), 0
        for length in (*lengths, len(text)):
            pieces.append(text[at : at + length])
            at += length
        assert left(*pieces) == said


def test_marks_of_calls_and_thoughts_pass() -> None:
    meant = (*MARKS, "<|tool_calls_section_begin|>", "<｜tool▁calls▁begin｜>", "<|tool_call>")  # noqa: RUF001
    for mark in meant:
        for text in (f"So {mark} it is", f"{mark} it is"):
            assert left(text) == text


def test_what_looks_like_a_token_is_said() -> None:
    for text in ("2 < 3 | 4 > 1", "a[0] and [INSIDE]", "<b>bold</b>", "Is x<y|", "<", "[", "  So"):
        assert left(text) == text
    assert left("Yes.<|im_e") == "Yes.", "a token that is broken off is one"


TEXTS = st.lists(
    st.sampled_from(
        (
            *("It is", " noon.", "\n", " ", "<", "|", "assistant", "model", "[", "As "),
            *(*SILENT, *HEADS, *ENDS, "<think>", "</think>", "<|channel|>"),
        )
    ),
    max_size=8,
).map("".join)


@given(TEXTS, st.data())
def test_text_may_be_cut_anywhere(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert left(*pieces) == left(text) == left(*text)
