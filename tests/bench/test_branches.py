"""What `bench llm --ahead` measures, on a few talks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voiceloop.bench.branches import BEHIND_S, EARLY_S, FOLLOW_UPS, Talk
from voiceloop.cli import main

pytestmark = pytest.mark.models

TALKS = """\
What is the capital of France?\tSay that again.
Tell me a joke.\tTell me another one.
nothing follows
What is 7 times 8?\tWhat did I ask?
"""


def test_a_reply_has_to_be_begun_before_the_last_words_and_long_enough_before_their_end() -> None:
    words, ends = "tell me the same thing once again".split(), [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4]
    parts = Talk("What?", words, ends).parts
    assert [count for count, _ in parts] == [0, 1, 2]  # after the third word 0.8 s are left
    assert dict(parts)[2] == pytest.approx(1.4 - EARLY_S - 0.4 - BEHIND_S)
    slow = Talk("What?", words, [3 * end for end in ends]).parts
    assert [count for count, _ in slow] == [0, 1, 2, 3, 4, 5]  # never after the last but one
    assert Talk("What?", ["yes"], [0.4]).parts == []


def test_hits_and_what_they_take_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talks = tmp_path / "talks.txt"
    talks.write_text(TALKS)
    argv = ["bench", "llm", "--ahead", "--prompts", str(talks)]
    assert main([*argv, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["settings"]["talks"] == 3 and record["settings"]["branches"] == 4
    assert record["same_text"] == 1
    assert record["hit_rate"] >= 0.3
    assert 0 <= record["guessed_hit_rate"] <= 1
    assert 0 < record["tokens_accepted"] <= record["tokens_begun"]
    assert record["passes"] < record["plain_passes"]
    assert record["processor_ms"] > 0 and record["ahead_ms"] > 0
    assert main([*argv, "--llm.branches", "2"]) == 0
    assert "at most 2 replies at a time" in capsys.readouterr().out


def test_what_cannot_be_measured_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "llm", "--ahead", "--synthetic", "tiny"]) == 2
    assert "--ahead measures one pair of models that know words" in capsys.readouterr().err
    empty = tmp_path / "empty.txt"
    empty.write_text("no tab\n")
    assert main(["bench", "llm", "--ahead", "--prompts", str(empty)]) == 2
    assert "there are no talks" in capsys.readouterr().err
    rejecting = ["--sampled", "--llm.verification", "rejection"]
    assert main(["bench", "llm", "--ahead", *rejecting]) == 2
    assert "nothing is begun ahead in rejection sampling" in capsys.readouterr().err


def test_the_talks_that_come_with_it_are_all_of_two_turns() -> None:
    lines = FOLLOW_UPS.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 200
    assert all(len(line.split("\t")) == 2 for line in lines)
