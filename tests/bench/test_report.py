"""What all reports share: tables that are complete and true to the record, and progress."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.bench.made import MACHINE
from tests.terminals import TerminalText
from voiceloop.bench.record import BenchRecord, Progress, open_folder, text, write
from voiceloop.errors import VoiceloopError

pytestmark = pytest.mark.pure

RECORD = BenchRecord(
    "latency",
    MACHINE,
    {"suite": "starter", "draft": None},
    {
        "memory_mb": 512.25,
        "modes": {
            "plain": {"wait_ms": {"p50": 100.0, "p95": 1105.3}, "parts": {"asr": 1.5}, "wer": None},
            "[fast]": {"wait_ms": {"p50": 50.0, "p95": 80.0}, "parts": {"asr": 0.5}, "wer": 0.03},
        },
        "ratios": {"plain_over_fast": 2.0},
        "refused": {},
        "points": [{"clip": "a"}],
    },
    {"clips": [{"name": "a"}]},
)


def test_a_report_has_a_row_for_each_figure_and_a_column_for_each_mode() -> None:
    assert text(RECORD).splitlines() == [
        "bench latency: suite starter",
        "",
        "| figure    |       |",
        "|-----------|-------|",
        "| memory_mb | 512.2 |",
        "",
        "| modes     |      plain |  [fast] |",
        "|-----------|------------|---------|",
        "| wait_ms   | 100 / 1105 | 50 / 80 |",
        "| parts.asr |        1.5 |     0.5 |",
        "| wer       |          - |    0.03 |",
        "",
        "| ratios          |   |",
        "|-----------------|---|",
        "| plain_over_fast | 2 |",
        "",
        "processor A & B, cores 2, threads 1, load 0.5, system Linux x86_64, python 3.11.7,"
        " torch 2.13, voiceloop 0.1.0",
    ]


def test_it_is_kept_beside_the_record(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "a" / "report")
    write(folder, RECORD, {"trace.json": [1]})
    assert {file.name for file in folder.iterdir()} == {"bench.json", "report.md", "trace.json"}
    assert json.loads((folder / "bench.json").read_text()) == RECORD.to_json()
    assert (folder / "report.md").read_text(encoding="utf-8") == text(RECORD) + "\n"


def test_a_report_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(VoiceloopError) as refused:
            open_folder(path)
        assert "--report" in refused.value.hint
    assert not list(tmp_path.glob("*/*"))


def test_progress_leaves_a_terminal_clean() -> None:
    terminal = TerminalText()
    with Progress(terminal) as progress:
        progress("loading")
        progress("answering")
    written = terminal.getvalue()
    assert "\n" not in written
    assert written.endswith("\r\x1b[K")


def test_progress_is_brief_in_a_log() -> None:
    log = io.StringIO()
    with Progress(log) as progress:
        for step in range(100):
            progress(f"step {step}")
    assert log.getvalue() == "step 0\n"
