"""The spans that OpenTelemetry gets of a turn: their names, times and attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import example, seconds, traces
from voiceloop.trace.otel import About, OtelSpan, WordsSaid, turn_span
from voiceloop.trace.record import (
    DROPPED_REPLY,
    PARTS,
    REPLY,
    Lane,
    Mark,
    Recorder,
    parts_ms,
    voice_to_voice_ms,
)
from voiceloop.types import TurnTrace

pytestmark = pytest.mark.virtual

ABOUT = About("conv_1", "target", "recogniser", "voice")
WORDS = WordsSaid("Is it SAID?", "It is REPLIED.")
SPOKEN = ("SAID", "REPLIED", "HEARD", "WRITTEN")


def whole(span: OtelSpan) -> Iterator[OtelSpan]:
    """The span and all within it."""
    yield span
    for child in span.children:
        yield from whole(child)


def named(trace: TurnTrace, words: WordsSaid | None = None) -> dict[str, OtelSpan]:
    """The spans of a turn by their names, the first of each name."""
    root = turn_span(trace, ABOUT, words)
    assert root is not None
    found: dict[str, OtelSpan] = {}
    for span in whole(root):
        found.setdefault(span.name, span)
    return found


def sum_ms(spans: Iterator[OtelSpan]) -> float:
    return sum((span.end - span.start) * 1000 for span in spans)


def answered(*, dropped: int = 0, tools: int = 0, by: str = "model") -> TurnTrace:
    """A turn with dropped replies, and one that was let out, which calls tools on its way."""
    recorder = Recorder(3)
    at, about = 20.0, {"by": by} if by == "skill" else {}
    recorder.mark(Mark.SPEECH_START, 19.0)
    for _ in range(dropped):
        recorder.span(Lane.DECODE, "round", at + 0.1, at + 0.2, tokens=5, text="WRITTEN")
        recorder.span(Lane.TTS, "clause 1", at + 0.2, at + 0.3, text="WRITTEN")
        recorder.span(Lane.REPLY, DROPPED_REPLY, at, at + 0.4, generated=5, **about)
        at += 1
    begun = at
    for index in range(tools):
        recorder.span(Lane.DECODE, "call look", at + 0.1, at + 0.2)
        arguments = json.dumps({"where": "WRITTEN"})
        recorder.span(
            Lane.REPLY, "tool look", at + 0.3, at + 0.4, call=f"c{index}", arguments=arguments
        )
        at += 0.4
    recorder.span(Lane.DECODE, "round", at + 0.1, at + 0.2, tokens=7, drafted=4, accepted=3)
    recorder.span(Lane.DECODE, "round", at + 0.2, at + 0.3, tokens=2, text="WRITTEN")
    recorder.span(Lane.TTS, "clause 1", at + 0.3, at + 0.4, text="WRITTEN")
    recorder.span(Lane.REPLY, REPLY, begun, at + 0.4, generated=9, **about)
    return recorder.trace("done", "HEARD")


# Times


@given(
    st.floats(0, 1e6),
    st.floats(0.001, 3),
    st.dictionaries(st.sampled_from([mark for mark, _ in PARTS.values()]), st.floats(-1, 3)),
)
def test_the_parts_of_the_latency_sum_to_it_and_follow_each_other(
    end: float, wait_s: float, done: dict[Mark, float]
) -> None:
    marks = {str(mark): end + after for mark, after in done.items()}
    marks |= {str(Mark.SPEECH_END): end, str(Mark.FIRST_SOUND): end + wait_s}
    trace = TurnTrace(1, marks)
    root, ms = turn_span(trace, ABOUT, None), voice_to_voice_ms(trace)
    assert root is not None and ms is not None
    (span,) = [one for one in root.children if one.name == "voice_to_voice"]
    assert sum_ms(iter(span.children)) == pytest.approx(ms, abs=0.01)
    edges = [(one.start, one.end) for one in span.children]
    assert [start for start, _ in edges] == [span.start, *(end for _, end in edges[:-1])]
    parts = parts_ms(trace)
    assert parts is not None
    told = {
        str(one.attributes["voiceloop.part"]): one.attributes["voiceloop.part_ms"]
        for one in span.children
    }
    assert told == parts and list(told) == list(PARTS)


@given(traces(), st.integers(0, 3), st.integers(0, 3), seconds)
def test_every_span_lies_within_the_one_that_has_it(
    trace: TurnTrace, dropped: int, tools: int, at: float
) -> None:
    made = answered(dropped=dropped, tools=tools)
    trace = replace(made, marks=dict(trace.marks), spans=trace.spans + made.spans)
    root = turn_span(trace, ABOUT, None)
    assert root is not None
    for span in whole(root):
        assert span.start <= span.end
        for child in span.children:
            assert span.start <= child.start and child.end <= span.end


# What there is


def test_a_plain_turn_has_a_span_for_each_stage() -> None:
    spans = named(example())
    assert list(spans) == [
        "invoke_agent voiceloop",
        "voice_to_voice",
        "wait for endpoint",
        "wait for stt",
        "wait for chat",
        "wait for tts",
        "wait for playback",
        "endpoint",
        "stt",
        "tts",
        "playback",
    ]
    root = spans["invoke_agent voiceloop"]
    assert (root.start, root.end) == (10.0, 15.0) and not root.failed
    assert root.attributes["gen_ai.conversation.id"] == "conv_1"
    assert root.attributes["voiceloop.outcome"] == "done"
    assert root.attributes["voiceloop.voice_to_voice_ms"] == pytest.approx(412)
    assert root.attributes["gen_ai.output.type"] == "speech"
    assert spans["stt"].attributes == {"voiceloop.model": "recogniser"}


def test_dropped_replies_are_linked_and_no_part_of_the_answer() -> None:
    root = turn_span(answered(dropped=2), ABOUT, None)
    assert root is not None
    first, second, kept = [one for one in root.children if one.name == "chat target"]
    for span, start in ((first, 20.0), (second, 21.0)):
        assert span.linked and span.attributes["voiceloop.dropped"] is True
        assert (span.start, span.end) == (start, start + 0.4)
        assert span.attributes["gen_ai.usage.output_tokens"] == 5
    assert not kept.linked and "voiceloop.dropped" not in kept.attributes
    assert kept.attributes["gen_ai.usage.output_tokens"] == 9
    assert kept.attributes["voiceloop.drafted"] == 4 and kept.attributes["voiceloop.accepted"] == 3
    assert kept.attributes["gen_ai.response.time_to_first_chunk"] == pytest.approx(0.2)
    (voice,) = [one for one in root.children if one.name == "tts"]
    assert voice.start > second.end, "what was synthesised for the dropped ones is not it"


def test_tools_run_between_requests_to_the_language_model() -> None:
    root = turn_span(answered(dropped=1, tools=2), ABOUT, None)
    assert root is not None
    kinds = [(one.start, one.end, one.name) for one in root.children if not one.linked]
    order = [name for _, _, name in sorted(kinds)]
    chat, tool = "chat target", "execute_tool look"
    assert order == [chat, tool, chat, tool, chat, "tts"]
    asked = [one for one in root.children if one.name == chat and not one.linked]
    tools = [one for one in root.children if one.name == tool]
    for request, run, following in zip(asked, tools, asked[1:], strict=False):
        assert request.end <= run.start and run.end == following.start
    assert [one.attributes["gen_ai.usage.output_tokens"] for one in asked] == [0, 0, 9]
    assert [one.attributes["gen_ai.tool.call.id"] for one in tools] == ["c0", "c1"]


def test_an_answer_by_rule_is_no_request_to_the_language_model() -> None:
    spans = named(answered(dropped=1, by="skill"))
    assert "skill" in spans and "chat target" not in spans


def test_a_sound_without_an_answer_is_no_turn() -> None:
    assert turn_span(replace(example(), outcome="abandoned"), ABOUT, None) is None
    dropped = replace(answered(dropped=1), outcome="abandoned")
    assert turn_span(dropped, ABOUT, None) is not None, "it has cost something"
    assert turn_span(TurnTrace(1), ABOUT, None) is None


def test_a_turn_that_failed_is_an_error() -> None:
    root = turn_span(replace(example(), outcome="failed"), ABOUT, None)
    assert root is not None and root.failed and root.attributes["error.type"] == "_OTHER"


# Words


@given(st.integers(0, 2), st.integers(0, 2))
def test_nobody_is_quoted_unless_words_are_wanted(dropped: int, tools: int) -> None:
    trace = answered(dropped=dropped, tools=tools)
    root = turn_span(trace, ABOUT, None)
    assert root is not None
    told = " ".join(f"{one.name} {dict(one.attributes)}" for one in whole(root))
    assert not [word for word in SPOKEN if word in told]


def test_words_that_are_wanted_are_written_as_messages() -> None:
    spans = named(answered(tools=1), WORDS)
    root = spans["invoke_agent voiceloop"].attributes
    (said,) = json.loads(str(root["gen_ai.input.messages"]))
    assert said == {"role": "user", "parts": [{"type": "text", "content": WORDS.transcript}]}
    (reply,) = json.loads(str(root["gen_ai.output.messages"]))
    assert reply["parts"][0]["content"] == WORDS.reply and reply["finish_reason"] == "stop"
    assert root["voiceloop.heard"] == "HEARD"
    tool = spans["execute_tool look"].attributes
    assert json.loads(str(tool["gen_ai.tool.call.arguments"])) == {"where": "WRITTEN"}


# From a session
