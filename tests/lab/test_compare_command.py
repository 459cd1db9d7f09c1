"""The command that compares two records, as its user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.compare import main
from tests.lab.test_compare import record, times

pytestmark = pytest.mark.real


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The file of a record."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(record(times(1))))
    return path


def test_the_status_tells_whether_the_second_record_is_worse(
    before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = tmp_path / "b.json"
    after.write_text(json.dumps(record([value + 300 for value in times(1)])))
    assert main([str(before), str(before)]) == 0
    assert "Nothing is worse" in capsys.readouterr().out
    assert main([str(before), str(after)]) == 1
    assert "Worse beyond noise" in capsys.readouterr().out
    assert main([str(after), str(before)]) == 0


def test_a_mistake_is_one_line_and_a_hint(
    before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, other = tmp_path / "text", tmp_path / "other.json"
    text.write_text("this is no JSON")
    other.write_text('{"bench": "llm"}')
    none = tmp_path / "none"
    for named, files in (
        ("text", [before, text]),
        ("text", [text, before]),
        ("bench llm", [before, other]),
        ("none", [before, none]),
        ("B.json", [before]),
    ):
        assert main([*map(str, files)]) == 2
        out, err = capsys.readouterr()
        first, hint = err.splitlines()
        assert named in first and hint.startswith("hint: ") and out == ""
