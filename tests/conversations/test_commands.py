"""`voiceloop conversations`: what its commands print, and what they refuse in one line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.conversations.test_store import TURN, a_turn, write
from voiceloop.cli.main import main
from voiceloop.conversations.store import VARIABLE, fact_statement
from voiceloop.skills.known import Fact

pytestmark = pytest.mark.real


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one conversation, which the commands find."""
    path = tmp_path / "c.sqlite3"
    monkeypatch.setenv(VARIABLE, str(path))
    fact = Fact(1, "my sister is called Anna")
    write(path, a_turn(TURN), lambda number: fact_statement(number, fact))
    return path


def test_they_list_show_export_forget_and_delete(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "work.json"
    assert main(["conversations", "list"]) == 0
    assert "work" in (line := capsys.readouterr().out) and "1 turn," in line
    assert main(["conversations", "show", "work"]) == 0
    shown = capsys.readouterr().out
    assert "   1  my sister is called Anna" in shown and "you: Hello" in shown and "Hi —" in shown
    assert main(["conversations", "export", "work", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["turns"][0]["heard"] == "Hi"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert main(["conversations", "export", "work", "--out", str(out)]) == 2, "never over a file"
    assert main(["conversations", "forget", "work", "1"]) == 0
    assert main(["conversations", "forget", "work", "1"]) == 2
    assert main(["conversations", "delete", "work"]) == 0
    assert main(["conversations", "show", "work"]) == 2
    assert "no conversation is named 'work'" in capsys.readouterr().err


def test_to_list_nothing_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none" / "c.sqlite3"))
    assert main(["conversations", "list"]) == 0
    assert "no conversation is kept" in capsys.readouterr().out
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["../c", "", "x" * 100, "a\x1bb"])
def test_a_name_that_is_none_is_told_before_anything_is_loaded(
    path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["conversations", "show", name], ["talk", "--conversation", name]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert "cannot be named" in error and "hint:" in error and "\x1b" not in error


def test_what_was_said_cannot_steer_the_terminal(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fact = Fact(2, "\x1b]0;owned\x07 and \x1b[2J")
    write(path, lambda number: fact_statement(number, fact))
    assert main(["conversations", "show", "work"]) == 0
    assert "\x1b" not in capsys.readouterr().out
