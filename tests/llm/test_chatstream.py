"""What comes of a stream of chat completions, however it was cut and whoever wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.chatstream import (
    LONGEST_LINE,
    Call,
    ChatStream,
    Complaint,
    Garbled,
    Piece,
    Read,
    Text,
    complaint,
)

pytestmark = pytest.mark.pure


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def crumb(index: int, **fields: Any) -> dict[str, Any]:
    function = {key: fields[key] for key in ("name", "arguments") if key in fields}
    own = {"id": fields["id"]} if "id" in fields else {}
    return {"index": index, "function": function, **own}


def wire(*chunks: object, end: str = "\n", done: bool = True) -> bytes:
    events = [f"data: {json.dumps(one, ensure_ascii=False)}{end}{end}" for one in chunks]
    return "".join([*events, f"data: [DONE]{end}{end}" if done else ""]).encode()


def read(*blocks: bytes) -> list[Piece]:
    stream = ChatStream()
    return [piece for block in blocks for piece in stream.feed(block)]


WHOLE = (
    chunk(role="assistant", content=""),
    chunk(content="Héllo "),
    chunk(content="👋 there"),
    chunk(tool_calls=[crumb(0, id="a", name="get_time", arguments="")]),
    chunk(tool_calls=[crumb(0, arguments='{"zone":')]),
    chunk(tool_calls=[crumb(0, arguments=' "UTC"}')]),
    chunk(finish="tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}},
)
PIECES = [Text("Héllo "), Text("👋 there"), Call("a", "get_time", '{"zone": "UTC"}'), Read(5)]


@given(st.data(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_bytes_may_be_cut_anywhere(data: st.DataObject, end: str) -> None:
    raw = wire(*WHOLE, end=end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=40)))
    blocks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert read(*blocks) == PIECES
    assert read(*(raw[at : at + 1] for at in range(len(raw)))) == PIECES


def test_comments_other_fields_and_data_in_several_lines_are_no_trouble() -> None:
    raw = (
        b"\xef\xbb\xbf: keep-alive\n\nevent: message\nid: 7\nretry: 10\n"
        b'data:{"choices": [{"delta":\ndata: {"content": "Hi"}}]}\n\n: more\n\n'
    )
    for end in (b"\n", b"\r\n", b"\r"):
        ended = raw.replace(b"\n", end)
        assert read(ended) == [Text("Hi")]
        assert read(*(ended[at : at + 1] for at in range(len(ended)))) == [Text("Hi")]


def test_a_reply_is_finished_by_its_reason_or_by_the_word_and_over_by_the_word_alone() -> None:
    stream = ChatStream()
    stream.feed(wire(chunk(content="Hi"), done=False))
    assert not stream.finished
    stream.feed(wire(chunk(finish="stop"), done=False))
    assert stream.finished and not stream.over
    assert stream.feed(wire(chunk(content="and more"), done=False)) == []
    stream.feed(wire())
    assert stream.over
    assert stream.feed(wire({"usage": {"prompt_tokens": 3}})) == []


def test_calls_come_whole_or_in_crumbs_and_servers_number_them_as_they_like() -> None:
    both = [crumb(0, name="one", arguments="{}"), crumb(1, name="two", arguments="{}")]
    expected = [Call("", "one", "{}"), Call("", "two", "{}")]
    assert read(wire(chunk(tool_calls=both))) == expected
    same = [crumb(0, name="one", arguments="{}"), crumb(0, name="two", arguments="{}")]
    assert read(wire(*(chunk(tool_calls=[one]) for one in same))) == expected
    turns = [crumb(1, arguments="}"), crumb(0, arguments="}")]
    begun = [crumb(0, name="one", arguments="{"), crumb(1, name="two", arguments="{")]
    assert read(wire(chunk(tool_calls=begun), chunk(tool_calls=turns))) == expected
    plain = {"index": 0, "function": {"name": "one", "arguments": {"a": 1}}}
    assert read(wire(chunk(tool_calls=[plain]))) == [Call("", "one", '{"a": 1}')]


def test_halves_of_characters_are_no_text_that_cannot_be_said() -> None:
    (piece,) = read(b'data: {"choices": [{"delta": {"content": "a\\ud83d"}}]}\n\n')
    assert piece == Text("a\ufffd")


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": None, "text": "x"}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None}}]},
        {"choices": [{"delta": {"content": 5, "reasoning_content": "hm"}}]},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
        {"choices": [], "usage": None},
        {"choices": [], "error": None},
    ],
)
def test_what_is_not_understood_says_nothing(strange: object) -> None:
    stream = ChatStream()
    assert stream.feed(wire(strange, done=False)) == []


@pytest.mark.parametrize("data", ["{", "[1]", '"text"', "<html>", "[" * 100_000])
def test_data_that_is_no_chunk_is_told(data: str) -> None:
    with pytest.raises(Garbled):
        read(f"data: {data}\n\n".encode())


def test_a_line_without_an_end_is_told() -> None:
    with pytest.raises(Garbled):
        read(*([b"x" * 65_536] * (LONGEST_LINE // 65_536 + 1)))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"message": "too\n long", "code": 400}}, "too long"),
        ({"error": "gone"}, "gone"),
        ({"detail": [{"msg": "bad field", "loc": ["body"]}]}, "bad field"),
        ({"message": "no"}, "no"),
        ([{"error": {"message": "listed"}}], "listed"),
        ({"error": {"code": 5}}, ""),
        (None, ""),
        (7, ""),
    ],
)
def test_servers_complain_in_many_ways(body: object, told: str) -> None:
    assert complaint(body) == told


def test_a_complaint_in_the_stream_is_one() -> None:
    stream = ChatStream()
    with pytest.raises(Complaint, match="out of memory"):
        stream.feed(wire({"error": {"message": "out of memory"}}))
