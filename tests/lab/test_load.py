"""The load: many real clients of a real server, and figures of what they saw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.command import carry_out
from lab.load import figures
from lab.load.measure import Load
from lab.load.plan import CallerTurn
from lab.load.run import run
from tests.bench.conftest import quiet

pytestmark = pytest.mark.real

TURN = CallerTurn(0, "what", "item_1", "done", "What?", 24_000, 130.0, 0.0, {}, 128.0, 28.0, 0)


def test_clients_speak_listen_and_are_silent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--speaking", "2", "--quiet", "1", "--idle", "3", "--turns", "1"]
    assert carry_out(Load, run, [*few, "--json", "--report", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "| fairness" in (tmp_path / "report.md").read_text(encoding="utf-8")
    for phase, turns in (("alone", 1), ("loaded", 2)):
        assert (found[phase]["turns"], found[phase]["answered"]) == (turns, turns)
        assert found[phase]["endpoint_to_sound_ms"]["p50"] > found[phase]["added_ms"]["p50"] > 0
    loaded = found["loaded"]
    assert loaded["same_transcripts"] == 1
    assert loaded["audio_sent_s"] == pytest.approx(loaded["audio_arrived_s"]) != 0
    assert found["dropped"] == []


@pytest.mark.slow
def test_clients_interrupt_and_vanish_and_nothing_is_left() -> None:
    progress: Any = quiet
    record, _ = run(Load(speaking=2, quiet=1, idle=3, turns=1, leavers=10), progress)
    found = record.figures
    talk = found["interruptions"]
    assert (talk["turns"], talk["interrupted"]) == (2, 2)
    # What pauses an answer comes before what decides that it is over.
    pause, decision = talk["pause_to_last_audio_ms"], talk["decision_to_last_audio_ms"]
    assert decision["p99"] < pause["p50"]
    assert found["vanished"] == 10
    before, after = found["left_before"], found["left_after"]
    for name in ("sessions", "conversations", "tasks", "threads"):
        assert after[name] <= before[name], name
    assert after["sessions"] == 0


def test_one_client_has_the_parts_of_its_wait_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = ["--speaking", "1", "--quiet", "0", "--idle", "0", "--turns", "1"]
    assert carry_out(Load, run, [*one, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    alone = found["alone"]
    assert "loaded" not in found and found["dropped"] == []
    assert (alone["turns"], alone["answered"]) == (1, 1)
    assert list(alone["parts_ms"]) == ["endpoint wait", "asr", "llm", "tts", "output"]
    assert alone["words"] > 0 and alone["word_errors"] < alone["words"]
    for turn in found["turns"]:
        # From the true end of speech, which the server finds a little early or late.
        assert abs(turn["found_late_ms"]) < 100
        parts = sum(turn["parts_ms"].values())
        assert parts == pytest.approx(turn["served_voice_to_voice_ms"], abs=0.01)
        assert turn["voice_to_voice_ms"] > turn["found_late_ms"] + parts


def test_the_wait_is_what_the_server_takes_and_what_it_does_not_see() -> None:
    late = replace(TURN, voice_to_voice_ms=140.0, found_late_ms=7.0)
    assert late.added_ms == pytest.approx(140 - 7 - 128)
    found = figures.answers([replace(late, parts_ms={"llm": 20.0}), replace(TURN, outcome="lost")])
    assert found["parts_ms"] == {"llm": {"p50": 20.0, "p95": 20.0, "p99": 20.0}}
    assert found["found_late_ms"]["p50"] == 7
    assert figures.understood([TURN], {"what": "What is that?"}) == {"words": 3, "word_errors": 2}


@pytest.mark.parametrize(
    "wrong", [["--speaking", "0"], ["--turns", "0"], ["--idle", "-1"], ["--leavers", "-1"]]
)
def test_a_load_of_nobody_is_one_line_and_a_hint(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(Load, run, wrong) == 2
    first, hint = capsys.readouterr().err.strip().splitlines()[-2:]
    assert first.startswith("a load needs somebody") and hint.startswith("hint: ")
