"""Valid events in any order, in each shell: all are answered, and no memory is left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import pytest

from tests.server.serving import Serving
from tests.server.shells import SHELLS, SOCKETS, in_shell
from tests.server.talkative import Talker
from tests.server.test_fuzz import memory_mb

pytestmark = pytest.mark.real

COUNT = 200_000
"""Events that are sent in each shell; one in fifty of them in the quick test."""
SIZES = [
    pytest.param(COUNT // 50, id="quick"),
    pytest.param(COUNT, id="all", marks=[pytest.mark.full, pytest.mark.timeout(0)]),
]
VISIT = 500
"""Events of one connection."""
STAGES = 8
"""Parts after each of which all clients have gone, and the memory is read."""
MOST_GROWTH_MB = 16


async def stage(url: str, seed: str, count: int) -> list[Talker]:
    """Send `count` events, on eight sockets at a time."""
    talkers: list[Talker] = []

    async def visits(number: int) -> None:
        for left in range(count // SOCKETS, 0, -VISIT):
            talker = Talker(f"{seed} {number} {left}")
            await talker.visit(url, min(VISIT, left))
            talker.events.clear()
            talkers.append(talker)

    async with anyio.create_task_group() as tasks:
        for number in range(SOCKETS):
            tasks.start_soon(visits, number)
    return talkers


def no_exception(server: Serving) -> None:
    assert server.process.poll() is None
    told = server.log.read_text()
    assert "Traceback" not in told and '"level": "error"' not in told, told[-9000:]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("shell", SHELLS)
def test_valid_events_are_answered_in_each_shell(tmp_path: Path, shell: str, count: int) -> None:
    statuses, errors, memory = Counter[str](), Counter[str](), list[float]()
    with in_shell(tmp_path, shell) as server:
        for number in range(STAGES):
            for talker in anyio.run(stage, server.url, f"{shell} {number}", count // STAGES):
                statuses += talker.statuses
                errors += talker.errors
            no_exception(server)
            memory.append(memory_mb(server))
            print(shell, number, round(memory[-1], 1), dict(statuses), dict(errors), flush=True)
    assert memory[-1] - memory[STAGES // 2 - 1] < MOST_GROWTH_MB
