"""The recorder, the parts of a latency, and what is written of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import EXAMPLE, example, traces
from voiceloop.trace.record import (
    PARTS,
    Lane,
    Mark,
    Recorder,
    endpoint_to_sound_ms,
    latency_entry,
    parts_ms,
    percentiles,
    to_json,
    to_perfetto,
    voice_to_voice_ms,
)
from voiceloop.types import StageSpan, TurnTrace

pytestmark = pytest.mark.pure


def microseconds(milliseconds: float) -> int:
    return round(milliseconds * 1000)


# Recorder


def test_the_first_of_two_equal_marks_wins():
    recorder = Recorder(1)
    recorder.mark(Mark.ENDPOINT, 2.0)
    recorder.mark(Mark.ENDPOINT, 1.0)
    assert recorder.at(Mark.ENDPOINT) == 2.0
    assert recorder.trace("done").marks == {"endpoint": 2.0}


def test_a_retracted_mark_can_be_made_again():
    recorder = Recorder(1)
    recorder.mark(Mark.PAUSE, 2.0)
    recorder.retract(Mark.PAUSE, Mark.ENDPOINT)
    assert recorder.at(Mark.PAUSE) is None
    recorder.mark(Mark.PAUSE, 3.0)
    assert recorder.at(Mark.PAUSE) == 3.0


def test_a_span_that_ends_before_it_starts_is_refused():
    with pytest.raises(ValueError, match="before it starts"):
        Recorder(1).span(Lane.ASR, "partial", 2.0, 1.0)


# Latency


@given(traces())
def test_the_parts_sum_to_the_whole_whatever_the_marks_are(trace: TurnTrace):
    whole, parts = voice_to_voice_ms(trace), parts_ms(trace)
    if whole is None or parts is None:
        assert whole is None and parts is None
        return
    assert list(parts) == list(PARTS)
    assert all(part >= 0 for part in parts.values())
    assert sum(microseconds(part) for part in parts.values()) == microseconds(whole)
    elapsed = trace.marks[Mark.FIRST_SOUND] - trace.marks[Mark.SPEECH_END]
    assert abs(whole - elapsed * 1000) <= 0.0006


@given(st.permutations(range(6)), st.floats(0, 1e4))
def test_each_moment_of_the_wait_belongs_to_the_first_part_that_is_not_done(
    order: list[int], start: float
):
    path = (Mark.SPEECH_END, *(mark for mark, _ in PARTS.values()))
    at = dict(zip(path, order, strict=True))
    trace = TurnTrace(1, {mark: start + moment for mark, moment in at.items()})
    parts = parts_ms(trace)
    if at[Mark.SPEECH_END] > at[Mark.FIRST_SOUND]:
        assert parts is None
        return
    assert parts is not None
    # The plain definition: ask of every second of the wait whom it belongs to.
    owners: Counter[str] = Counter()
    for moment in range(at[Mark.SPEECH_END], at[Mark.FIRST_SOUND]):
        owners[next(name for name, (mark, _) in PARTS.items() if at[mark] > moment)] += 1
    assert parts == {name: pytest.approx(owners[name] * 1000) for name in PARTS}


def test_the_parts_of_stages_in_turn_are_the_times_between_their_marks():
    parts = parts_ms(example())
    expected = {"endpoint wait": 200, "asr": 60, "llm": 70, "tts": 70, "output": 12}
    assert parts == pytest.approx(expected)
    assert voice_to_voice_ms(example()) == 412
    assert endpoint_to_sound_ms(example()) == 212


def test_a_turn_without_sound_has_no_latency():
    silent = {mark: at for mark, at in EXAMPLE.items() if mark != Mark.FIRST_SOUND}
    trace = TurnTrace(1, silent, outcome="interrupted")
    assert voice_to_voice_ms(trace) is parts_ms(trace) is endpoint_to_sound_ms(trace) is None
    assert latency_entry(trace) is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_percentiles_interpolate_between_order_statistics(values: list[float]):
    found = percentiles(values)
    ordered = sorted(values)
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        at = share * (len(ordered) - 1)
        low, high = ordered[int(at)], ordered[min(int(at) + 1, len(ordered) - 1)]
        assert found[name] == pytest.approx(low + (high - low) * (at - int(at)), abs=1e-6)


def test_the_latency_is_shown_with_its_parts_and_the_mean_round_of_the_draft():
    parts = "endpoint 200 · asr 60 · llm 70 · tts 70 · output 12"
    assert latency_entry(example()) == ("412 ms", parts)
    rounds = [(4, 4), (4, 3), (3, 1), (0, 0)]
    spans = tuple(
        StageSpan(Lane.DECODE, "round", 12.0, 12.1, {"drafted": drafted, "accepted": accepted})
        for drafted, accepted in rounds
    )
    drafting = replace(example(), spans=spans)
    assert latency_entry(drafting) == ("412 ms", f"{parts} · drafts 2.7 of 3.7")


def test_what_takes_no_time_is_left_out_and_long_waits_are_in_seconds():
    marks: dict[str, float] = {Mark.SPEECH_END: 1.0, Mark.ENDPOINT: 1.0004, Mark.FIRST_SOUND: 13.44}
    assert latency_entry(TurnTrace(1, marks)) == ("12.4 s", "output 12440")


# JSON


def test_json_counts_from_the_first_voiced_sample():
    plain = to_json(example())
    assert plain["marks"]["speech_start"] == 0
    assert plain["marks"]["speech_end"] == 1.8
    assert plain["spans"][0] == {
        "lane": "asr",
        "name": "partial",
        "start": 0.3,
        "end": 0.4,
        "args": {"words": 0, "text": "so"},
    }
    assert plain["counters"] == {"drafted": 40, "accepted": 31}


# Perfetto


def check_trace_events(document: dict) -> None:
    """The rules of the trace event format that a viewer relies on."""
    events = json.loads(json.dumps(document))["traceEvents"]
    phases = [event["ph"] for event in events]
    metadata = phases.count("M")
    assert set(phases[:metadata]) == {"M"}, "metadata comes first"
    times = [event["ts"] for event in events[metadata:]]
    assert times == sorted(times)
    named: set[int] = set()
    open_turns: dict[int, list[str]] = {}
    until: dict[int, int] = {}
    for event in events:
        assert isinstance(event["name"], str) and event["name"]
        assert type(event["pid"]) is type(event["tid"]) is type(event["ts"]) is int
        assert event["ts"] >= 0
        match event["ph"]:
            case "M":
                assert event["args"]
                if event["name"] == "thread_name":
                    named.add(event["tid"])
            case "X":
                assert type(event["dur"]) is int and event["dur"] >= 0
                # On one thread no event begins within another, so none is drawn over another.
                assert event["ts"] >= until.get(event["tid"], 0)
                until[event["tid"]] = event["ts"] + event["dur"]
            case "i":
                assert event["s"] == "t"
            case "C":
                assert all(isinstance(value, int | float) for value in event["args"].values())
            case "b":
                assert event["cat"] and "id" in event
                open_turns.setdefault(event["id"], []).append(event["name"])
            case "e":
                assert open_turns[event["id"]].pop() == event["name"]
            case other:
                raise AssertionError(f"unknown phase {other}")
        assert event["tid"] in named or event["ph"] == "M"
    assert not any(open_turns.values()), "every asynchronous event ends"


@given(st.lists(traces(), max_size=4, unique_by=lambda trace: trace.turn))
def test_any_traces_give_valid_trace_events(recorded: list[TurnTrace]):
    document = to_perfetto(recorded)
    check_trace_events(document)
    phases = Counter(event["ph"] for event in document["traceEvents"])
    assert phases["X"] == sum(len(trace.spans) for trace in recorded)
    assert phases["i"] == sum(len(trace.marks) for trace in recorded)


def test_perfetto_shows_stages_marks_parts_and_counters():
    events = to_perfetto([example()])["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [name for tid, name in sorted(threads.items())] == ["turns", *Lane]
    sound = next(e for e in events if e["name"] == "sound")
    assert (sound["ts"], sound["dur"], threads[sound["tid"]]) == (2_200_000, 2_800_000, "speaker")
    endpoint = next(e for e in events if e["name"] == "endpoint")
    assert (endpoint["ph"], endpoint["ts"], threads[endpoint["tid"]]) == ("i", 2_000_000, "vad")
    tokens = [e["args"]["tokens"] for e in events if e["ph"] == "C" and e["name"] == "tokens"]
    assert tokens == list(range(0, 61, 3))
    words = [e["args"]["words"] for e in events if e["ph"] == "C" and e["name"] == "words"]
    assert words == [0, 0, 1, 2, 3, 4, 5]
    asynchronous = [e["name"] for e in events if e["ph"] == "b"]
    assert asynchronous == ["turn 7", *PARTS]
