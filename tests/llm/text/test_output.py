"""Tokens become text, calls or nothing: all of the text, only when certain, in any bursts."""

from __future__ import annotations

import json
from bisect import bisect_left
from itertools import accumulate
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.llm.text.output import CallOutput, Output, SpeechOutput
from voiceloop.llm.text.parts import MARKS, Parts
from voiceloop.llm.text.template import special_tokens

pytestmark = pytest.mark.models  # the tokenizer is a real one
CALL = '<tool_call>\n{"name": "set_timer", "arguments": {"minutes": 5}}\n</tool_call>'
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\ufffd"),
    max_size=30,
).filter(lambda text: "{" not in text and not any(mark in text for mark in MARKS))


def items(workshop, ids, sizes=(), **options):
    """The items of a whole reply whose bursts have these sizes, then one token each."""
    output, found, at = Output(workshop.tokenizer, **options), [], 0
    sizes = [*sizes, *[1] * len(ids)]
    while at < len(ids):
        size = sizes.pop(0)
        found += output.push(ids[at : at + size])
        at += size
    return found + output.finish()


def spoken(found):
    return "".join(item.text for item in found if isinstance(item, SpeechOutput))


def calls(found):
    return [item for item in found if isinstance(item, CallOutput)]


sizes = st.lists(st.integers(1, 6), max_size=20)


@given(text=texts, sizes=sizes)
def test_joined_bursts_are_the_text_with_every_character_whole(workshop, text, sizes):
    ids = workshop.template.encode(text)
    found = items(workshop, ids, sizes)
    assert spoken(found) == text
    assert all("\ufffd" not in item.text for item in found)
    assert [i for item in found for i in item.ids] == ids


@given(before=texts, after=texts, sizes=sizes)
def test_a_call_is_taken_out_of_the_text_around_it(workshop, before, after, sizes):
    ids = workshop.template.encode(before + CALL + after)
    found = items(workshop, ids, sizes)
    assert spoken(found) == before + after
    (call,) = calls(found)
    assert (call.name, call.arguments) == ("set_timer", {"minutes": 5})
    assert workshop.tokenizer.decode(call.ids) == CALL
    assert not {*call.ids} & {*workshop.tokenizer.convert_tokens_to_ids(["<|im_end|>"])}
    assert sum(len(item.ids) for item in found) == len(ids)


@given(name=st.text(max_size=8), arguments=st.dictionaries(texts, texts, max_size=3), sizes=sizes)
def test_names_and_arguments_arrive_as_they_were_written(workshop, name, arguments, sizes):
    tags = ("<tool_call>", "</tool_call>", "<think>")
    for token in (*tags, *special_tokens(workshop.tokenizer).values()):
        if token in name or any(token in part for pair in arguments.items() for part in pair):
            return
    body = json.dumps({"name": name, "arguments": arguments})
    (call,) = items(workshop, workshop.template.encode(f"<tool_call>{body}</tool_call>"), sizes)
    assert (call.name, call.arguments) == (name, arguments)


@pytest.mark.parametrize(
    "given",
    [
        '"arguments": {"minutes": 5}',
        '"parameters": {"minutes": 5}',
        r'"arguments": "{\"minutes\": 5}"',
        r'"parameters": "{\"minutes\": 5}"',
    ],
)
def test_arguments_come_under_either_name_and_as_text_too(workshop, given):
    body = f'<tool_call>{{"name": "set_timer", {given}}}</tool_call>'
    (call,) = items(workshop, workshop.template.encode(body))
    assert (call.name, call.arguments, call.problem) == ("set_timer", {"minutes": 5}, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[f(a='x', n=2), g()]", [("f", {"a": "x", "n": 2}, ""), ("g", {}, "")]),
        (
            "[f(on=true, off=None, many=[1, {'b': 2.5}])]",
            [("f", {"on": True, "off": None, "many": [1, {"b": 2.5}]}, "")],
        ),
        ("[f('x')]", [("f", {}, "its arguments have no names")]),
        ("[f(a=open('x'))]", [("", {}, "it is no JSON")]),
        ("[f(a=1), 2]", [("", {}, "it is no JSON")]),
        ("[f(", [("", {}, "it is no JSON")]),
    ],
)
def test_calls_of_lfm2_are_read_as_pythons(workshop, text, expected):
    ids = workshop.template.encode(f"Well.<|tool_call_start|>{text}<|tool_call_end|> Bye.")
    found = items(workshop, ids)
    assert spoken(found) == "Well. Bye."
    assert [(call.name, call.arguments, call.problem) for call in calls(found)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('f{a:<|"|>say "{hi}", all<|"|>,n:-2.5}', {"a": 'say "{hi}", all', "n": -2.5}),
        (
            'f{on:true,off:null,many:[1,{b:<|"|>c<|"|>}]}',
            {"on": True, "off": None, "many": [1, {"b": "c"}]},
        ),
        ('f{a:"x", b : bare}', {"a": "x", "b": "bare"}),
        ("f{}", {}),
        ('f{a:<|"|>never', None),
        ("f{a:1", None),
    ],
)
def test_calls_of_gemma_4_are_read(workshop, text, expected):
    ids = workshop.template.encode(f"Well.<|tool_call>call:{text}<tool_call|> Bye.")
    (call,) = calls(items(workshop, ids))
    assert (call.name, call.arguments) == ("f", expected or {})
    assert bool(call.problem) == (expected is None)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("call", "no JSON"),
        ("{", "no JSON"),
        ("[]", "no name"),
        ("3", "no name"),
        ('{"name": 4}', "no name"),
        ('{"arguments": {}}', "no name"),
        ('{"name": "x", "arguments": 1}', "no object"),
        ('{"name": "x", "parameters": [1]}', "no object"),
        ('{"name": "x", "arguments": "five"}', "no object"),
    ],
)
def test_of_a_call_that_cannot_be_read_it_is_told_why(workshop, body, problem):
    ids = workshop.template.encode(f"Well.<tool_call>{body}</tool_call> Bye.")
    found = items(workshop, ids)
    assert spoken(found) == "Well. Bye."
    (call,) = calls(found)
    assert problem in call.problem and not call.arguments
    assert body in workshop.tokenizer.decode(call.ids)


@given(before=texts, thought=texts, after=texts, sizes=sizes)
def test_thoughts_are_never_spoken(workshop, before, thought, after, sizes):
    if "<" in before + thought or "</think>" in thought:
        return
    ids = workshop.template.encode(f"{before}<think>{thought}</think>{after}")
    assert spoken(items(workshop, ids, sizes)) == before + after
    begun = workshop.template.encode(f"{thought}</think>{after}")
    assert spoken(items(workshop, begun, sizes, thinking=True)) == after


def test_what_may_be_the_beginning_of_a_tag_waits_and_the_rest_does_not(workshop):
    output = Output(workshop.tokenizer)
    for text, certain in (("Yes <thi", "Yes "), ("s", "<this")):
        assert spoken(output.push(workshop.template.encode(text))) == certain


@given(
    text=st.text("abcdeé#. ", max_size=30),
    stop=st.lists(st.text("abc#. ", min_size=1, max_size=3), min_size=1, max_size=3),
    sizes=sizes,
)
def test_nothing_is_spoken_from_the_first_stop_string_on(workshop, text, stop, sizes):
    ids = workshop.template.encode(text)
    output = Output(workshop.tokenizer, stop=stop)
    found, left = [], [*ids]
    for size in [*sizes, *[1] * len(ids)]:
        burst, left = left[:size], left[size:]
        found += output.push(burst)
    found += output.finish()
    places = [(text.find(one) + len(one), text.find(one)) for one in stop if one in text]
    _, at = min(places, default=(0, len(text)))
    assert spoken(found) == text[:at]
    kept = [i for item in found for i in item.ids]
    assert kept == ids[: len(kept)]
    if at < len(text):  # the reply's tokens are those that begin before the stop string
        assert output.stopped == len(kept)
        assert workshop.tokenizer.decode(ids[: output.stopped]).startswith(text[:at].rstrip())
        assert len(workshop.tokenizer.decode(ids[: max(0, len(kept) - 1)])) <= at
    else:
        assert output.stopped is None


class Pieces:
    """A tokenizer whose tokens are any texts: marks begin and end in the middle of them."""

    texts = (
        *("Hi", "Hi<think>", "<thi", "nk>", "x</think>yes", "</think>", "so ", "a<tool", "_call>{"),
        *('"name": ', '"look"}', "}</tool_call>bye", " [", '{"a"', ": 1}", "; ", "!", "{", "\n"),
        *("</tool_call><th", "[TOOL_", "<|message|>", "<|channel|>final", "[/THINK] well"),
    )
    added_tokens_decoder: ClassVar[dict[int, object]] = {}

    def decode(self, ids, **options):
        return "".join(self.texts[index] for index in ids)


@given(ids=st.lists(st.integers(0, len(Pieces.texts) - 1), max_size=25), sizes=sizes)
def test_tokens_across_marks_keep_their_places_and_lose_no_text(ids, sizes):
    output, found, left = Output(Pieces()), [], [*ids]
    for size in [*sizes, *[1] * len(ids)]:
        burst, left = left[:size], left[size:]
        found += output.push(burst)
    found += output.finish()
    whole, at, spoken_at = Parts(), 0, []
    text = "".join(Pieces.texts[index] for index in ids)
    for part in [part for char in text for part in whole.push(char)] + whole.finish():
        spoken_at += range(at, at + len(part.text)) if part.spoken else ()
        at += len(part.text)
    assert spoken(found) == "".join(text[index] for index in spoken_at)
    ends = [0, *accumulate(len(Pieces.texts[index]) for index in ids)]
    counted, before = {}, 0
    for item in found:
        if isinstance(item, SpeechOutput):
            counted |= {
                place: before + end for place, end in zip(item.places, item.ends, strict=True)
            }
            before += len(item.text)
    assert counted.keys() == {place for place in range(len(ids)) if ends[place] in spoken_at}
    for place, count in counted.items():
        start, end = ends[place : place + 2]
        # Of a token that does not come at once, the rest counts with the token after it.
        until = next((index for index in range(start, end) if index not in spoken_at), end)
        assert bisect_left(spoken_at, start) < count <= bisect_left(spoken_at, until)
