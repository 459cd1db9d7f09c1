"""The report of `bench latency`: complete, well-formed, and true to the record."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.made import (
    MACHINE,
    SVG,
    answered,
    clip_record,
    drawing,
    judge,
    of_json,
    read,
    take_record,
)
from voiceloop.bench.endings import Silence, endpointing
from voiceloop.bench.report import draw
from voiceloop.bench.report.latency import distribution, report, trade_off, turn_waterfall
from voiceloop.config import TurnConfig
from voiceloop.trace.record import Lane, to_json
from voiceloop.trace.record import of_json as traced
from voiceloop.types import Calibration

pytestmark = pytest.mark.pure


def html(record: dict[str, Any]) -> str:
    return draw.html(report(of_json(record)))


def text(record: dict[str, Any]) -> str:
    return draw.text(report(of_json(record)))


def mode(**others: Any) -> dict[str, Any]:
    spread = {"p50": 400.0, "p95": 600.0}
    return {
        "voice_to_voice_ms": spread,
        "endpoint_to_sound_ms": spread,
        "endpoint_delay_ms": spread,
        "false_cutoffs": 0.125,
        "missed_endpoints": 0,
        "wer": 0.031,
        "tail_words_lost": 0,
        "wasted_tokens": 36,
        "cpu_s_per_turn": 0.62,
        "underruns": 0,
        "partials": {
            **{"partials": 7, "backlog_ms": spread, "behind_ms": spread},
            "before_the_next_ms": spread,
        },
        **others,
    }


def turn() -> dict[str, Any]:
    recorder = judge(answered(), 2.05, 2.1, "what is the time", 0.9)
    recorder.span(Lane.SPEAKER, "sound", 102.3, 110.0)
    recorder.span(Lane.ASR, "partial", 100.1, 100.2)  # long before the end of speech
    return to_json(recorder.trace("done", "It is noon."))


@pytest.fixture
def record() -> dict[str, Any]:
    """With every part that a record may have."""
    silences = [
        Silence("a", "end", None, "what is the time", 0.9, 120.0),
        Silence("a", "incomplete", 400.0, "what is the", 0.01, 120.0),
        Silence("b", "whole", 300.0, "what is <b>", 0.3, 120.0),
    ]
    unanswered = take_record(None)
    clips = [
        clip_record(
            f"a-{index:03}",
            sequential=take_record(900.0 + 40 * index),
            speculative=take_record(300.0 + 20 * index),
        )
        for index in range(5)
    ]
    clips.append(clip_record("a-005", sequential=unanswered, speculative=unanswered))
    reactions = {
        **dict.fromkeys(("sounds", "triggered", "resumed", "interrupted", "played_to_the_end"), 3),
        **{key: {"p50": 90.0, "p95": 120.0} for key in ("trigger_ms", "decided_ms", "stop_ms")},
    }
    settings = {
        **{"suite": "starter", "seed": 0, "turns": 6, "turns_planned": 24},
        **{"asr": "whisper <starter>", "target": "starter", "draft": "auto", "tts": "espeak"},
        **{"endpoint": "auto", "hangover_ms": 500, "complete_ms": 160, "incomplete_ms": 1100},
        **{"max_new_tokens": 256},
    }
    return {
        "bench": "latency",
        "machine": MACHINE,
        "settings": settings,
        "modes": {"sequential": mode(wer=None), "speculative": mode()},
        "whole_clip_wer": 0.03,
        "ratios": {"sequential_over_speculative": 2.5, "streaming_over_speculative": None},
        "cost_ms_without": {"no-draft": 12.3},
        "cpu_over_streaming": {"speculative": 1.4},
        "memory_mb": 600.0,
        "endpointing": endpointing(
            silences, {"speculative": [("whole", True)]}, TurnConfig(), Calibration(0.1, 0.02, 88)
        ),
        "interruptions": {"kinds": {"cough": reactions}, "all": reactions, "each": []},
        "carry_over": {
            "speculative": {
                "same answer": {
                    **{"clips": 4, "begun_too_early": 3, "first_clause_kept": 3, "share": 1.0}
                }
            }
        },
        "clips": clips,
        "turns": {which: {"clip": "a-000", "trace": turn()} for which in ("median", "worst")},
    }


def test_the_page_stands_alone_and_says_all_that_the_record_has(record: dict[str, Any]) -> None:
    record["modes"]["<b> & co"] = mode()
    for clip in record["clips"]:
        clip["takes"]["<b> & co"] = take_record(None)
    page = html(record)
    tags = read(page)
    assert not {"script", "link", "img", "iframe"} & set(tags.tags)
    assert not {"src", "href"} & tags.attributes.keys()
    assert "url(" not in page and "@import" not in page
    assert "prefers-color-scheme: dark" in page
    assert tags.tags.count("h1") == 1
    for table in report(of_json(record)).tables:
        for row in (table.header, *table.rows):
            assert all(cell in tags.text for cell in row)
    for words in ("whisper <starter>", "A & B", "a-000", "Time was up", "not how well people"):
        assert words in tags.text
    assert not re.search(r"nan|None", tags.text)


def test_every_class_that_is_used_has_a_style(record: dict[str, Any]) -> None:
    page = html(record)
    style = page[page.index("<style>") : page.index("</style>")]
    for value in read(page).attributes["class"]:
        for name in value.split():
            assert re.search(rf"\.{name}\b", style), name


def test_every_picture_is_well_formed_and_stays_within_its_frame(record: dict[str, Any]) -> None:
    record["modes"]["<other> & co"] = mode()
    for clip in record["clips"]:
        clip["takes"]["<other> & co"] = take_record(None)
    pictures = report(of_json(record)).pictures
    assert len(pictures) == 5  # times, parts, endpoints, and two turns
    for picture in pictures:
        assert len(list(drawing(picture.svg).iter(f"{SVG}text"))) > 3
        assert picture.about or picture.key


def test_every_turn_is_a_dot_at_its_time(record: dict[str, Any]) -> None:
    root = drawing(distribution(record))
    dots = [float(dot.attrib["cx"]) for dot in root.iter(f"{SVG}circle")]
    times = [
        clip["takes"][mode]["voice_to_voice_ms"]
        for mode in record["modes"]
        for clip in record["clips"]
    ]
    times = [time for time in times if time is not None]
    assert len(dots) == len(times)
    scale = (dots[-1] - dots[0]) / (times[-1] - times[0])
    for dot, time in zip(dots, times, strict=True):
        assert dot - dots[0] == pytest.approx(scale * (time - times[0]), abs=0.2)


def test_the_parts_of_a_bar_are_those_of_the_turn_in_the_middle(record: dict[str, Any]) -> None:
    root = drawing(report(of_json(record)).pictures[1].svg)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert "speculative, llm: 170.0 ms" in titles  # of 300, 320, 340, 360 and 380
    assert "sequential, endpoint wait: 490.0 ms" in titles


def test_the_waterfall_shows_parts_and_stages_near_the_answer() -> None:
    root = drawing(turn_waterfall(traced(turn()), turn()["parts_ms"]))
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert "end of turn?: 50.0 ms" in titles
    assert not any(str(title).startswith("partial") for title in titles)
    assert any(str(title).startswith("endpoint wait: ") for title in titles)
    assert {"speech_end", "endpoint", "first_sound"} <= set(titles)


shares = st.none() | st.floats(0, 1)


@given(st.lists(st.tuples(st.none() | st.floats(0, 2000), shares, shares), max_size=9))
def test_any_curve_is_drawn(points: list[tuple[float | None, float | None, float | None]]) -> None:
    curve = [
        {"ms": 60 + 20 * index, "delay_ms": delay, "cut_offs_incomplete": some, "cut_offs": all_}
        for index, (delay, some, all_) in enumerate(points)
    ]
    drawing(trade_off({"curves": {"fixed": curve}, "configured_ms": {"fixed": 80}}))


def test_a_record_of_little_is_a_page_too(record: dict[str, Any]) -> None:
    little = copy.deepcopy(record)
    for name in ("endpointing", "interruptions", "carry_over"):
        del little[name]
    little["turns"] = {}
    little["clips"] = little["clips"][-1:]
    nothing = {"p50": None, "p95": None}
    latencies = dict.fromkeys(
        ("voice_to_voice_ms", "endpoint_to_sound_ms", "endpoint_delay_ms"), nothing
    )
    little["modes"] = {"speculative": mode(**latencies, false_cutoffs=None)}
    little |= {"ratios": {"a_over_b": None}, "cost_ms_without": {}, "cpu_over_streaming": {}}
    tags = read(html(little))
    assert "waterfall" not in tags.text
    assert not re.search(r"nan|None", text(little))


def test_the_table_names_every_mode_with_its_figures(record: dict[str, Any]) -> None:
    told = text(record)
    (line,) = [line for line in told.splitlines() if line.startswith("speculative  ")][:1]
    assert line.split()[1:4] == ["400", "/", "600"]
    assert "12.5%" in line and "0.62" in line
    assert re.search(r"^sequential ÷ speculative, voice to voice p50 +2\.50$", told, re.M)
    assert "voice to voice with no-draft" in told and "+12 ms" in told
    assert "6 of 24 things said" in told
    assert "1 of 1 (100.0%)" in told  # the pause after a whole prefix
    assert not re.search(r"nan|None", told)


def test_a_report_is_the_page_the_record_and_what_belongs_beside_them(
    record: dict[str, Any], tmp_path: Path
) -> None:
    own = of_json(record)
    draw.write(tmp_path, own, report(own), {"perfetto-speculative.json": {"traceEvents": []}})
    assert {file.name for file in tmp_path.iterdir()} == {
        *("report.html", "bench.json", "perfetto-speculative.json"),
    }
    assert json.loads((tmp_path / "bench.json").read_text()) == record
    assert json.loads((tmp_path / "perfetto-speculative.json").read_text()) == {"traceEvents": []}
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html(record)
