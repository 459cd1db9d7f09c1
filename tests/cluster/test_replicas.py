"""Replicas on a real Ray cluster of this machine: `make cluster` installs Ray and runs this.

One replica dies, or is taken away, while clients talk; others take their conversations up.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.resuming import KEY, QUESTION, Resuming, coming_back
from tests.server.serving import until

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / ".cluster/bin"
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
ENVIRONMENT = os.environ | {
    "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": KEY,
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": "3700",
    "RAY_USAGE_STATS_ENABLED": "0",
    "VOICELOOP_API_KEY": KEY,
    "PYTHONPATH": str(ROOT),
}

if not PROGRAMS.exists():
    pytest.skip("Ray is not installed: make cluster", allow_module_level=True)


class Cluster:
    """A cluster of this machine alone, with replicas of the service."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "serve.yaml"

    def run(self, *words: str) -> str:
        """The output of one of Ray's programs."""
        done = subprocess.run(
            [str(PROGRAMS / words[0]), *words[1:]],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def deploy(self, count: int | None, **arguments: str) -> None:
        """Have so many replicas, or as many as the load asks for; the others stay."""
        arguments = {"options": OPTIONS, "cpus": "0.1"} | arguments
        one = {"name": "voice", "route_prefix": "/", "import_path": "voiceloop.cluster:app"}
        deployment = {"name": "Voice"} | ({"num_replicas": count} if count else {})
        http = {"host": "127.0.0.1", "port": PORT}
        self._file.write_text(
            json.dumps(
                {
                    "http_options": http,
                    "applications": [one | {"args": arguments, "deployments": [deployment]}],
                }
            )
        )
        self.run("serve", "deploy", str(self._file))
        until(lambda: self.has(count or 1), 120.0)

    def has(self, replicas: int) -> bool:
        """Whether so many replicas run, and no others are left."""
        status = self.run("serve", "status")
        return f"RUNNING: {replicas}" in status and "STOPPING" not in status

    @contextmanager
    def killed(self) -> Iterator[None]:
        """Kill a replica that clients are on."""
        found = subprocess.run(
            ["pgrep", "-f", "ServeReplica:voice"], stdout=subprocess.PIPE, text=True, check=True
        )
        os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
        yield


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    own = Cluster(tmp_path_factory.mktemp("ray"))
    own.run("ray", "stop", "--force")
    own.run("ray", "start", "--head", "--num-cpus", "4", "--node-ip-address", "127.0.0.1")
    try:
        own.deploy(2)
        time.sleep(12.0)  # until HAProxy, which looks each 5 s, gives clients to both
        yield own
    finally:
        own.run("serve", "shutdown", "--yes")  # `ray stop` alone leaves HAProxy behind
        own.run("ray", "stop", "--force")


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
        one.client.create("Why is the sky blue?")
        one.client.send("response.create")
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
