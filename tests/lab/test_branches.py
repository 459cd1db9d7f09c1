"""What `bench llm --ahead` measures, on a few talks."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.decoding.branches import BEHIND_S, EARLY_S, Talk, run
from tests.bench.conftest import quiet
from voiceloop.bench.command import BenchLlm
from voiceloop.errors import ConfigError

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


def test_hits_and_what_they_take_are_told(parallel_pack: None, tmp_path: Path) -> None:
    prompts = tmp_path / "talks.txt"
    prompts.write_text(TALKS)
    command = BenchLlm(prompts=prompts)
    found = run(command, quiet)[0].figures
    assert found["same_text"] == 1
    assert found["hit_rate"] >= 0.3
    assert 0 < found["tokens_accepted"] <= found["tokens_begun"]
    assert found["passes"] < found["plain_passes"]
    prompts.write_text("no tab\n")
    with pytest.raises(ConfigError, match="there are no talks"):
        run(command, quiet)
