"""The pictures of a turn: never too wide, in order, and true to the record."""

from __future__ import annotations

import random

import pytest
from hypothesis import example as instance
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import example, traces
from voiceloop.trace.record import Lane
from voiceloop.trace.waterfall import waterfall
from voiceloop.types import StageSpan, TurnTrace

pytestmark = pytest.mark.pure


@given(traces(), st.integers(48, 160))
@instance(TurnTrace(1, spans=(StageSpan(Lane.ASR, "asr", 0.0, 5e-324),)), 80)
def test_no_line_of_a_waterfall_is_wider_than_asked(trace: TurnTrace, width: int):
    lines = waterfall(trace, width)
    assert lines and all(len(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)


def test_the_waterfall_shows_each_part_after_the_one_before():
    lines = waterfall(example(), 80)
    picture = {line[:15].strip(): line[15:-9] for line in lines[:5]}
    starts = [picture[name].index("█") for name in ("endpoint wait", "asr", "llm", "tts")]
    assert starts == sorted(starts)
    assert picture["endpoint wait"].count("█") == round(56 * 200 / 412)
    figures = [line.split()[-2] for line in lines[:6]]
    assert figures == ["200", "60", "70", "70", "12", "412"]


def test_the_overlap_picture_shows_how_busy_each_stage_was():
    rows = {line[:15].strip(): line for line in waterfall(example(), 80)[7:]}
    assert rows["user"].endswith("1800 ms")
    assert rows["recognition"].endswith("600 ms")
    assert rows["reply"].endswith("800 ms")
    assert rows["playback"].endswith("2800 ms")
    decodes = rows["recognition"][15:-9].split()
    assert len(decodes) > 2, "there are gaps between the decodes"
    assert any("╵0 s" in row for row in rows.values())
    for label, busy in (("recognition", 0.6), ("reply", 0.8), ("playback", 2.8)):
        cells = rows[label][15:-9].replace(" ", "")
        height = sum("▁▂▃▄▅▆▇█".index(cell) + 1 for cell in cells) / 8
        share = busy / 5.0 * 56  # of five seconds in 56 cells
        assert share <= height <= share + len(cells) / 8, "a cell is as high as the stage was busy"


def test_a_turn_that_was_not_answered_is_drawn_without_a_latency():
    trace = TurnTrace(3, {"speech_start": 1.0, "speech_end": 2.0}, outcome="abandoned")
    lines = waterfall(trace)
    assert lines[0] == "turn 3: abandoned, no reply was heard"
    assert any(line.startswith("user") for line in lines)


def test_the_same_spans_in_another_order_draw_the_same_picture():
    trace = example()
    shuffled = list(trace.spans)
    random.Random(0).shuffle(shuffled)
    again = TurnTrace(trace.turn, trace.marks, trace.counters, "", "done", tuple(shuffled))
    assert waterfall(again) == waterfall(trace)
