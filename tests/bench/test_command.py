"""`voiceloop bench llm` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voiceloop.cli import main

pytestmark = pytest.mark.models

TINY = ["bench", "llm", "--synthetic", "tiny", "--max-new-tokens", "4", "--repeats", "1"]


def test_it_prints_one_line_of_json_and_writes_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TINY, "--acceptance", "0.9", "--json", "--report", str(tmp_path / "r")]) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    record = json.loads(line)
    assert record["greedy_equal"] is True
    assert record["settings"]["synthetic_acceptance"] == 0.9
    assert (tmp_path / "r" / "report.md").is_file()
    assert "loading" in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["bench"], "llm"),
        (["bench", "lllm"], "lllm"),
        ([*TINY, "--synthetic", "8b-1b"], "8b+1b"),
        ([*TINY, "--acceptance", "2"], "2"),
        ([*TINY, "--prompts", "p.txt"], "--prompts"),
        (["bench", "llm", "--prompts", "/no/such/p.txt"], "/no/such/p.txt"),
        (["bench", "llm", "--target", "./no/such/model"], "--draft"),
        (["bench", "llm", "--target", "./no/such/model", "--draft", "starter"], "no/such/model"),
        ([*TINY, "--report", "/dev/null/report"], "/dev/null/report"),
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
