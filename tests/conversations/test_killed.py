"""A process that is killed at any moment: what was heard 100 ms before is on the disk."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from voiceloop.conversations.store import ConversationStore

pytestmark = pytest.mark.real

CHILD = Path(__file__).with_name("speaking.py")
LOST_S = 0.1
"""Seconds of what was heard that may be lost."""


def kill_one(path: Path, after_s: float) -> float:
    """Have a process speak, kill it some time after its first word, and return how many seconds of
    what was heard the store lacks: the age of the oldest word that is missing."""
    with subprocess.Popen(
        [sys.executable, str(CHILD), str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(after_s)  # the moment of its death is what is tested
        child.kill()
        killed = time.monotonic()
        lines = [first, *child.stdout]
    said = [line.split() for line in lines if line.endswith("\n")]
    with closing(ConversationStore(path, pytest.fail)) as store:
        kept = {turn.number: turn.words for turn in store.record("work").turns}
    missing = [
        killed - float(at) for at, turn, words in said if kept.get(int(turn), 0) < int(words)
    ]
    return max(missing, default=0.0)


@pytest.mark.parametrize("runs", [3, pytest.param(100, marks=pytest.mark.full)])
def test_nothing_that_was_heard_a_tenth_of_a_second_before_is_lost(
    tmp_path: Path, runs: int
) -> None:
    moments = random.Random(runs)
    lost = [kill_one(tmp_path / f"{run}.sqlite3", moments.uniform(0.0, 4.0)) for run in range(runs)]
    middle = sorted(lost)[runs // 2]
    print(f"{runs} kills: oldest word lost, median {middle:.3f} s, largest {max(lost):.3f} s")
    assert max(lost) <= LOST_S
