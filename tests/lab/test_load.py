"""The server under clients that interrupt answers and clients that vanish."""

from __future__ import annotations

from typing import Any

import pytest

from lab.load.run import LabLoad, interruptions, run
from tests.bench.conftest import quiet

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_clients_interrupt_and_vanish_and_nothing_is_left() -> None:
    progress: Any = quiet
    record, _ = run(LabLoad(speaking=2, quiet=1, idle=3, turns=1, leavers=10), progress)
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


def test_stale_audio_is_counted_from_pause_and_decision_of_its_own_answer() -> None:
    moments = {("paused", "item_1"): 99.99, ("interrupted", "item_1"): 100.4, ("paused", "x"): 1.0}
    turns = [{"item_id": "item_1"}, {"item_id": "item_2"}]
    found = interruptions(turns, {"item_1": 100.0}, moments)
    assert (found["turns"], found["interrupted"]) == (2, 1)
    assert found["pause_to_last_audio_ms"]["p99"] == pytest.approx(10)
    assert found["decision_to_last_audio_ms"]["p50"] == pytest.approx(-400)
