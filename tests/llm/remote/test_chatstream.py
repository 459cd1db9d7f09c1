"""What comes of a stream of chat completions, however it was cut and whoever wrote it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.remote.chatstream import (
    LONGEST_LINE,
    LONGEST_STREAM,
    PIECE,
    ChatStream,
    End,
    Piece,
    PromptUsage,
    StreamedCall,
    Text,
    Thought,
    ToolCallDeltas,
)
from voiceloop.llm.remote.errors import Garbled, ReportedError

pytestmark = pytest.mark.pure


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_delta(index: int, **fields: Any) -> dict[str, Any]:
    function = {key: fields[key] for key in ("name", "arguments") if key in fields}
    own = {"id": fields["id"]} if "id" in fields else {}
    return {"index": index, "function": function, **own}


def wire(*chunks: object, end: str = "\n", done: bool = True) -> bytes:
    events = [f"data: {json.dumps(one, ensure_ascii=False)}{end}{end}" for one in chunks]
    return "".join([*events, f"data: [DONE]{end}{end}" if done else ""]).encode()


def every(*blocks: bytes) -> list[Piece]:
    stream = ChatStream()
    return [piece for block in (*blocks, b"") for piece in stream.feed(block)]


def read(*blocks: bytes) -> list[Piece]:
    """What is said, called and read, without what only shows that the model is at work."""
    return [
        piece for piece in every(*blocks) if isinstance(piece, Text | StreamedCall | PromptUsage)
    ]


WHOLE = (
    chunk(role="assistant", content=""),
    chunk(content="Héllo "),
    chunk(content="👋 there"),
    chunk(tool_calls=[call_delta(0, id="a", name="get_time", arguments="")]),
    chunk(tool_calls=[call_delta(0, arguments='{"zone":')]),
    chunk(tool_calls=[call_delta(0, arguments=' "UTC"}')]),
    chunk(finish="tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}},
)
PIECES = [
    Text("Héllo "),
    Text("👋 there"),
    StreamedCall("a", "get_time", '{"zone": "UTC"}'),
    PromptUsage(5, cached=4),
]


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
    assert stream.finished and not stream.over
    stream.feed(wire())
    assert stream.over
    assert stream.feed(wire({"usage": {"prompt_tokens": 3}})) == []


@given(st.text(alphabet="a\U0001f44b\U0001d11e\u00e9", max_size=8))
def test_halves_of_characters_become_whole_or_what_can_be_said(text: str) -> None:
    def said(*halves: str) -> str:
        event = 'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n'
        pieces = read(*((event % half).encode() for half in halves), wire(chunk()))
        return "".join(one.text for one in pieces if isinstance(one, Text))

    assert said(*json.dumps(text)[1:-1].replace("\\u", " \\u").split(" ")) == text
    assert said("a\\ud83d") == said("a", "\\ud83d") == "a\ufffd"
    assert said("\\ud83d", "b", "\\udc4b") == "\ufffdb\ufffd"


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": None, "text": "x"}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None}}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
        {"choices": [{"index": 1, "delta": {"content": "another"}}]},
        {"choices": [{"delta": {"content": [{"type": "image_url", "text": 5}, None]}}]},
        {"object": "chat.completion.chunk", "message": "still loading"},
        {"code": 200, "msg": "success"},
        {"choices": [], "usage": None},
        {"choices": [], "error": None},
    ],
)
def test_what_is_not_understood_says_nothing(strange: object) -> None:
    assert read(wire(strange, done=False)) == []


@pytest.mark.parametrize("data", ["{", "[1]", '"text"', "<html>", "[" * 100_000])
def test_data_that_is_no_chunk_is_told(data: str) -> None:
    with pytest.raises(Garbled):
        read(f"data: {data}\n\n".encode())


def test_a_line_without_an_end_is_told() -> None:
    with pytest.raises(Garbled):
        read(*([b"x" * 65_536] * (LONGEST_LINE // 65_536 + 1)))


def test_nothing_that_comes_fills_the_memory() -> None:
    line = b"data: " + b"x" * 65_536 + b"\n"
    with pytest.raises(Garbled, match="an event without an end"):
        read(*([line] * (LONGEST_LINE // 65_536 + 1)))
    many = wire(chunk(content="a" * 60_000), done=False)
    with pytest.raises(Garbled, match="a reply without an end"):
        read(*([many] * (LONGEST_STREAM // len(many) + 1)))
    for deltas in (
        [call_delta(0, arguments="x" * 10_000)],
        [call_delta(0)],
        [call_delta(7, id="x" * 10_000)],
    ):
        block = wire(*[chunk(tool_calls=deltas * 100)], done=False)
        with pytest.raises(Garbled, match="calls of tools without an end"):
            read(*([block] * 2000))


# ---- what a model thinks

THOUGHTS: list[dict[str, Any]] = [
    {"reasoning_content": "hm hm"},
    {"reasoning": "hm hm", "content": ""},
    {"reasoning": "hm hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm hm"}]},
    {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm hm"}], "content": None},
    {"thinking": "hm hm"},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm hm"}]}]},
    {"content": [{"type": "reasoning", "text": "hm hm"}]},
    {"thinking_blocks": [{"type": "thinking", "thinking": "hm hm"}]},
]


@pytest.mark.parametrize("delta", THOUGHTS)
def test_thoughts_are_told_apart_wherever_a_server_puts_them(delta: dict[str, Any]) -> None:
    pieces = every(wire(chunk(**delta), chunk(content="Yes."), chunk("length")))
    assert pieces == [Thought("hm hm"), Text("Yes."), End(cut=True)]
    whole = {"choices": [{"message": {**delta, "content": "Yes."}, "finish_reason": "stop"}]}
    if not delta.get("content"):
        assert every(wire(whole)) == [Thought("hm hm"), Text("Yes."), End(cut=False)]


def test_whatever_comes_of_a_reply_shows_that_the_model_is_at_work() -> None:
    calling = {"tool_calls": [call_delta(0, name="a")]}
    deltas: list[dict[str, Any]] = [{"role": "assistant"}, {"content": ""}, calling, {}]
    for delta in deltas:
        assert every(wire(chunk(**delta), done=False))
    for other in ({"choices": []}, {"choices": [{"index": 2, "delta": {"content": "x"}}]}):
        assert not every(wire(other, done=False))
    assert not every(b": keep-alive\n\n")


PARTS: list[Any] = [
    [{"type": "text", "text": "Yes."}],
    {"type": "text", "text": "Yes."},
    [{"type": "output_text", "text": {"value": "Yes."}}],
    ["Yes."],
    [{"text": "Ye"}, {"type": "reference", "text": "1"}, {"type": "text", "text": "s."}],
]


@pytest.mark.parametrize("content", PARTS)
def test_content_may_come_in_parts(content: Any) -> None:
    for key in ("content", "refusal"):
        said = read(wire(chunk(**{key: content})))
        assert "".join(one.text for one in said if isinstance(one, Text)) == "Yes."


def test_a_call_in_the_older_form_is_a_call() -> None:
    begun = {"name": "get_time", "arguments": ""}
    pieces = [begun, {"arguments": '{"zone":'}, {"arguments": ' "UTC"}'}]
    expected = [StreamedCall("", "get_time", '{"zone": "UTC"}')]
    end = chunk("function_call", function_call=None)
    assert read(wire(*(chunk(function_call=one) for one in pieces), end)) == expected
    whole = {"content": None, "function_call": {"name": "get_time", "arguments": '{"zone": "UTC"}'}}
    assert read(wire({"choices": [{"message": whole}]})) == expected


def test_a_summary_behind_a_reply_is_not_said_again() -> None:
    end = {"choices": [{"delta": {}, "message": {"content": "Yes."}, "finish_reason": "stop"}]}
    assert read(wire(chunk(content="Yes."), end)) == [Text("Yes.")]
    both = [{"index": 1, "delta": {"content": "No."}}, {"index": 0, "delta": {"content": "Yes."}}]
    assert read(wire({"choices": both})) == [Text("Yes.")]


@pytest.mark.parametrize("tokens", [10**399, -1, 10**12, 1e300, "many", [5], {"a": 1}, None])
def test_numbers_that_nobody_can_have_read_count_as_none(tokens: object) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens_details": tokens}}
    assert read(wire(usage, done=False)) in ([], [PromptUsage(0)])
    half = {"choices": [], "usage": {"prompt_tokens": 7, "prompt_tokens_details": [tokens]}}
    assert read(wire(half, done=False)) == [PromptUsage(7)]


# ---- what goes wrong


WRONG: list[tuple[bytes, str]] = [
    (b'error: {"code": 400, "message": "it broke"}\n\n', "it broke"),
    (b'event: error\ndata: {"message": "it broke", "code": 500}\n\n', "it broke"),
    (b"event: error\ndata: it broke\n\n", "it broke"),
    (b'event: error\ndata: "it broke"\n\n', "it broke"),
    (wire({"error": {"message": "it broke"}}), "it broke"),
    (wire({"error": "it broke"}), "it broke"),
    (wire({"errors": [{"message": "it broke"}]}), "it broke"),
    (wire({"error_code": 50001, "text": "it broke"}), "it broke"),
    (wire({"object": "error", "message": "it broke", "code": 500}), "it broke"),
    (wire({"type": "error", "message": "it broke"}), "it broke"),
    (wire({"type": "BadRequestError", "message": "it broke"}), "it broke"),
    (wire({"code": "DataInspectionFailed", "message": "it broke"}), "it broke"),
    (wire({"detail": [{"msg": "it broke"}]}), "it broke"),
    (wire({"choices": None, "message": "it broke"}), "it broke"),
    (wire({"choices": [{"delta": {}, "error": {"message": "it broke"}}]}), "it broke"),
    (wire({"error": {"code": 5}}), ""),
    (wire(chunk("error")), ""),
    *(
        (wire(chunk(reason)), f"the reply was ended early ({reason})")
        for reason in ("abort", "cancelled", "insufficient_system_resource", "timeout")
    ),
]


@given(st.text(max_size=5000) | st.integers(0, 5000).map(lambda n: "x " * n))
def test_a_long_chunk_comes_in_pieces(text: str) -> None:
    pieces = [one.text for one in read(wire(chunk(content=text))) if isinstance(one, Text)]
    assert "".join(pieces) == text
    assert all(len(piece) <= PIECE for piece in pieces)


def test_a_filter_ends_a_reply_and_keeps_what_came_before() -> None:
    for reason in ("content_filter", "SAFETY", "sensitive", "RECITATION", "prohibited_content"):
        filtered = every(wire(chunk(content="I "), chunk(reason)))
        assert filtered == [Text("I "), End(cut=False, filtered=True)]


@pytest.mark.parametrize(
    "reason", ["length", "max_tokens", "MAX_TOKENS", "model_length", "max_new"]
)
def test_a_limit_cuts_a_reply_off(reason: str) -> None:
    assert every(wire(chunk(content="I "), chunk(reason)))[1:] == [End(cut=True)]


@pytest.mark.parametrize(("raw", "told"), WRONG)
def test_an_error_in_the_stream_is_one_in_every_shape(raw: bytes, told: str) -> None:
    said = wire(chunk(content="Begun"), done=False)
    for before in (b"", said):
        stream = ChatStream()
        with pytest.raises(ReportedError) as caught:
            for at in range(len(before + raw)):
                stream.feed((before + raw)[at : at + 1])
        assert caught.value.said == told
    stream = ChatStream()
    assert Text("Begun") in stream.feed(said + raw), "what came before it is given"
    with pytest.raises(ReportedError):
        stream.feed(b"")


def test_an_end_without_a_reply_is_none() -> None:
    for raw in (wire(), wire({"choices": [], "usage": {}}), wire({"some": "thing"})):
        with pytest.raises(Garbled):
            read(raw)


@pytest.mark.parametrize(
    "told", [5, "text", [5], [[]], True, [{"function": {"arguments": 1}}, "x"]]
)
def test_calls_that_are_none_are_told(told: object) -> None:
    with pytest.raises(Garbled, match="calls of tools"):
        read(wire(chunk(tool_calls=told)))


# ---- calls of tools

BARE = object()


def delta(
    index: object = BARE, own: object = BARE, name: object = BARE, arguments: object = BARE
) -> dict[str, Any]:
    """Only what is given is there."""
    function = {"name": name, "arguments": arguments}
    told = {"index": index, "id": own}
    found = {key: value for key, value in told.items() if value is not BARE}
    function = {key: value for key, value in function.items() if value is not BARE}
    return found | ({"function": function} if function else {})


def gathered(*deltas: object) -> list[tuple[str, str, str]]:
    every = ToolCallDeltas()
    for one in deltas:
        every.gather([one])
    return [(call.id, call.name, call.arguments) for call in every.calls]


CITY = '{"city": "Rome", "days": [1, 2]}'


@given(
    st.lists(st.integers(0, len(CITY)), max_size=6),
    st.sampled_from(["index", "none", "null"]),
    st.sampled_from(["first", "each", "never"]),
    st.sampled_from(["first", "each", "blank"]),
    st.booleans(),
)
def test_one_call_is_one_call_whoever_crumbles_it(
    cuts: list[int], numbered: str, identified: str, named: str, summed: bool
) -> None:
    at = [0, *sorted(cuts), len(CITY)]
    pieces = [CITY[a:b] for a, b in pairwise(at)]
    deltas = list[object]()
    for k, piece in enumerate(pieces):
        index = {"index": 0, "none": BARE, "null": None}[numbered]
        own = "a1" if identified == "each" or (identified == "first" and k == 0) else BARE
        blank = "" if named == "blank" else BARE
        name = "weather" if named == "each" or k == 0 else blank
        deltas.append(delta(index, own, name, piece))
    if summed and identified != "never":
        deltas.append(delta(0, "a1", "weather", json.dumps(CITY)))
        expected = json.dumps(CITY)
    else:
        expected = CITY
    assert gathered(*deltas) == [("" if identified == "never" else "a1", "weather", expected)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (delta(0, "a", "f", '{"x": 1}'), delta(1, "b", "f", '{"x": 2}')),
        (delta(0, "a", "f", '{"x": 1}'), delta(0, "b", "f", '{"x": 2}')),
        (delta(BARE, "a", "f", '{"x": 1}'), delta(BARE, "b", "f", '{"x": 2}')),
        (delta(0, BARE, "f", '{"x": 1}'), delta(0, BARE, "f", '{"x": 2}')),
        (delta(0, BARE, "f", ""), delta(0, BARE, "g", "")),
        (delta(0, "", "f", "{}"), delta(1, "", "g", "{}")),
        (delta(0, "a", "f", '{"x": 1}'), delta(1, "a", "g", '{"x": 2}')),
    ],
)
def test_two_calls_are_two_calls(first: dict[str, Any], second: dict[str, Any]) -> None:
    found = gathered(first, second)
    assert [(name, arguments) for _, name, arguments in found] == [
        (one["function"]["name"], one["function"]["arguments"]) for one in (first, second)
    ]


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([delta(0, "x", BARE, '{"a"'), delta(0, BARE, "f", ": 1}")], [("x", "f", '{"a": 1}')]),
        ([delta(0, "x", "get_", ""), delta(0, BARE, "time", "{}")], [("x", "get_time", "{}")]),
        ([delta(0, "x", "get_", ""), delta(0, "x", "time", "{}")], [("x", "get_time", "{}")]),
        ([delta(0, "x", "f", "{}"), delta(0, BARE, BARE, '{"a": 1}')], [("x", "f", '{"a": 1}')]),
        ([delta(0, "x", "f", '{"a": 1}'), delta(0, BARE, BARE, "")], [("x", "f", '{"a": 1}')]),
        ([delta(0, "x", "f", '{"a"'), delta(0, "y", BARE, ": 1}")], [("x", "f", '{"a": 1}')]),
        ([delta(0, 7, "f", {"a": 1})], [("7", "f", '{"a": 1}')]),
        ([delta(0, None, None, None), None], [("", "", "")]),
        ([delta([1], {"a": 1}, "f", "{}")], [("", "f", "{}")]),
    ],
)
def test_crumbs_belong_together_by_their_ids(deltas: list[object], expected: list[object]) -> None:
    assert gathered(*deltas) == expected
