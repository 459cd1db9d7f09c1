"""Replicas on a real Ray cluster of this machine: `make cluster` installs Ray and runs this.

One replica dies, or is taken away, while clients talk; others take their conversations up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.cluster import PROGRAMS, Cluster
from tests.server.resuming import QUESTION, Resuming, coming_back
from tests.server.serving import KEY, redis_server, until

pytestmark = pytest.mark.real

PORT = 8000
URL = f"ws://localhost:{PORT}/v1/realtime"
OPTIONS = (
    f"--preset starter --llm-server none --behind-proxy --port {PORT} --server.drain-s 20 "
    "--server.max-sessions 24 --server.max-sessions-per-key 40 --server.max-parked-per-key 40"
)
BACK_S = 40.0
"""Seconds within which a client whose replica has died is in its conversation again."""
HOLD_S = float(os.environ.get("VOICELOOP_HOLD_S", "0"))
"""Seconds for which the other connections are held after that: Ray's HAProxy cuts healthy ones
after 120 s if it is told nothing else."""

if not PROGRAMS.exists():
    pytest.skip("Ray is not installed: make cluster", allow_module_level=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("ray")
    with (
        redis_server(folder) as store,
        Cluster(folder, PORT, f"{OPTIONS} --server.store {store}", VOICELOOP_API_KEY=KEY) as own,
    ):
        own.deploy(2)
        time.sleep(12.0)  # until HAProxy, which looks each 5 s, gives clients to both
        yield own


def clients(count: int) -> list[Resuming]:
    return [Resuming(URL) for _ in range(count)]


def test_a_replica_that_is_killed_takes_nobody_with_it(cluster: Cluster) -> None:
    talking, silent = clients(6), clients(14 if HOLD_S else 2)
    everybody = talking + silent
    for one in talking:
        assert "Paris" in one.asks(QUESTION)
    time.sleep(3.0)
    with coming_back(everybody), cluster.killed():
        until(lambda: any(one.back_after is not None for one in everybody), BACK_S)
        time.sleep(5.0)
        cut = [one for one in everybody if one.cut_at is not None]
        others = [one for one in everybody if one not in cut]
        assert cut and others
        until(lambda: all(one.back_after is not None for one in cut), BACK_S)
        assert max(one.back_after or 0.0 for one in cut) < BACK_S
        for one in talking:
            assert one not in cut or one.knows(QUESTION, "Paris")
            assert "Paris" in one.asks(QUESTION)
        time.sleep(HOLD_S)
        assert all(one.cut_at is None for one in others)
        print("back after", sorted(round(one.back_after or 0, 2) for one in cut))
    for one in everybody:
        assert "Paris" in one.asks(QUESTION)
        one.client.drop()


def test_nobody_is_cut_off_while_a_replica_is_taken_away(cluster: Cluster) -> None:
    cluster.deploy(2)
    talking = clients(6)
    for one in talking:
        assert "Paris" in one.asks(QUESTION)
    before = {id(one): one.client for one in talking}
    for one in talking:
        one.begins("Why is the sky blue?")
    with coming_back(talking):
        cluster.deploy(1)
        until(lambda: all(one.client.closed is None for one in talking))
        moved = [one for one in talking if one.client is not before[id(one)]]
        assert moved, "the replica had clients"
        for one in moved:
            old = before[id(one)]
            assert old.closed is not None
            assert old.all("response.done")[-1]["response"]["status"] == "completed"
            assert one.knows(QUESTION, "Paris", "Why is the sky blue?")
    for one in talking:
        assert "Paris" in one.asks(QUESTION)
        one.client.drop()


def test_who_speaks_brings_another_replica_and_who_is_silent_does_not(cluster: Cluster) -> None:
    cluster.deploy(1)
    cluster.deploy(None, replicas="1-2", speakers="2")
    time.sleep(5.0)  # until Ray has begun to replace the replica
    until(lambda: cluster.has(1), 120.0)
    talking = clients(4)
    time.sleep(20.0)
    assert cluster.has(1), "nobody speaks"
    over = False

    def talk(one: Resuming) -> None:
        while not over:
            assert "sky" in one.asks("Why is the sky blue?")

    with ThreadPoolExecutor(len(talking)) as pool:
        answers = [pool.submit(talk, one) for one in talking]
        try:
            until(lambda: cluster.has(2), 150.0)
        finally:
            over = True
        for answer in answers:
            answer.result()
    for one in talking:
        one.client.drop()
