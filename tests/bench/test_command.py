"""The commands of `voiceloop bench` as a user meets them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from voiceloop.cli.main import main

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def latency(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report on two clips, each heard three times."""
    folder = tmp_path_factory.mktemp("latency") / "report"
    arguments = ["--turns", "2", "--modes", "streaming, speculative"]
    assert main(["bench", "latency", *arguments, "--report", str(folder)]) == 0
    return folder


def test_latency_is_measured_of_whole_conversations(latency: Path) -> None:
    record = json.loads((latency / "bench.json").read_text())
    assert record["settings"]["suite"] == "starter"
    assert (record["settings"]["turns"], record["settings"]["turns_planned"]) == (2, 2)
    assert list(record["modes"]) == ["streaming", "speculative"]
    delays = [mode["endpoint_delay_ms"] for mode in record["modes"].values()]
    for mode in record["modes"].values():
        assert mode["answered"] == 2
        assert mode["voice_to_voice_ms"]["p50"] > 0
        assert mode["missed_endpoints"] == 0
        assert mode["parts_off_by_ms"] < 1
        assert mode["wer"] < 0.5
    # They replay the same decisions.
    assert delays[0] == delays[1]
    assert record["ratios"]["streaming_over_speculative"] > 0
    assert record["ratios"]["sequential_over_speculative"] is None


def test_its_report_has_tables_and_traces_beside_the_record(latency: Path) -> None:
    modes = ("streaming", "speculative")
    assert {file.name for file in latency.iterdir()} == {
        *("bench.json", "report.md", *(f"perfetto-{mode}.json" for mode in modes)),
    }
    assert "| voice_to_voice_ms" in (latency / "report.md").read_text()
    trace = json.loads((latency / "perfetto-speculative.json").read_text())
    assert {"first_sound", "endpoint wait"} <= {event["name"] for event in trace["traceEvents"]}


def test_a_human_voice_ends_its_turn_once_and_in_time(
    speech: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(speech / "LJ001-0008.flac", tmp_path)
    arguments = ["--input", str(tmp_path), "--modes", "speculative", "--json"]
    assert main(["bench", "latency", *arguments]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    record = json.loads(line)
    assert record["settings"]["suite"] == "input"
    assert [clip["name"] for clip in record["clips"]] == ["LJ001-0008"]
    mode = record["modes"]["speculative"]
    assert (mode["turns"], mode["false_cutoffs"], mode["missed_endpoints"]) == (1, 0, 0)
    assert mode["endpoint_delay_ms"]["p95"] < 1500
    assert mode["wer"] is None  # nobody says what was said


def test_recordings_of_people_are_named_or_it_is_one_line() -> None:
    command = [sys.executable, "-m", "voiceloop", "bench", "latency", "--suite", "people"]
    environment = {name: value for name, value in os.environ.items() if name != "VOICELOOP_SPEECH"}
    ran = subprocess.run(
        [*command, "--asr.model", "tiny.en"], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 2 and "VOICELOOP_SPEECH" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["bench"], "llm"),
        (["bench", "lllm"], "lllm"),
        (["bench", "latency", "--suite", "peple"], "people"),
        (["bench", "latency", "--suite", "starter", "--input", "."], "--input or --suite"),
        (["bench", "latency", "--suite", "people"], "--asr.model"),
        (["bench", "asr", "--clips", "1"], "--clips"),
        (["bench", "asr", "--input", "/no/such/folder"], "/no/such/folder"),
        (["bench", "asr", "--report", "/dev/null/report"], "/dev/null/report"),
        (["bench", "latency", "--modes", "speculativ"], "'speculative'"),
        (["bench", "latency", "--turns", "0"], "--turns"),
        (["bench", "latency", "--turns", "some"], "--turns"),
        (["bench", "latency", "--input", "/no/such/folder"], "/no/such/folder"),
        (["bench", "latency", "--report", "/dev/null/report"], "/dev/null/report"),
        (["bench", "llm", "--prompts", "/no/such/p.txt"], "/no/such/p.txt"),
        (["bench", "llm", "--target", "./no/such/model"], "no/such/model"),
        (["bench", "llm", "--target", "./no/such/model", "--draft", "starter"], "no/such/model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_costs_one_line_and_a_hint(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    told = [line for line in err.splitlines() if line.startswith(("voiceloop: ", "hint: "))]
    assert len(told) == 2
    assert named in err
    assert "Traceback" not in err
    assert out == ""
