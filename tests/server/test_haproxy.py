"""Two servers behind HAProxy, as deploy/haproxy.cfg has it: one dies, or is replaced.

Nobody else's conversation is disturbed, and whoever was on it goes on at the other server.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.server.resuming import QUESTION, Resuming, coming_back
from tests.server.serving import KEY, Serving, free_port, proxied, redis_server, serving, until

pytestmark = pytest.mark.real

BACK_S = 3.0
"""Seconds within which a client whose server has died is in its conversation again."""
HOLD_S = float(os.environ.get("VOICELOOP_HOLD_S", "0"))
"""Seconds for which the other connections are held after that."""
OPTIONS = (
    *("--behind-proxy", "--server.max-sessions", "24", "--server.max-sessions-per-key", "40"),
    *("--server.max-parked-per-key", "40", "--server.drain-s", "20"),
)


class Deployed:
    """Two servers, and HAProxy in front of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = [free_port(), free_port()]
        self.servers = list[Serving]()
        self.stack = ExitStack()
        self.store = self.stack.enter_context(redis_server(folder))
        self.port = free_port()
        self.url = f"ws://localhost:{self.port}/v1/realtime"

    def start(self, index: int) -> Serving:
        """Start one of the servers at its port."""
        options = (*OPTIONS, "--server.store", self.store, "--allow-host", f"localhost:{self.port}")
        return self.stack.enter_context(
            serving(self.folder, *options, port=self.ports[index], VOICELOOP_API_KEY=KEY)
        )

    def clients(self, count: int) -> list[Resuming]:
        """Clients, each on the server that has the fewest."""
        return [self.stack.enter_context(Resuming(self.url)) for _ in range(count)]


@pytest.fixture
def deployed(tmp_path: Path, require_program: Callable[[str], Path]) -> Iterator[Deployed]:
    require_program("haproxy")
    own = Deployed(tmp_path)
    with own.stack:
        own.servers = [own.start(0), own.start(1)]
        own.stack.enter_context(proxied(own.port, own.ports))
        yield own
        for file in tmp_path.glob("serve-*.log"):
            assert "Traceback" not in file.read_text()


def test_a_server_that_is_killed_takes_nobody_with_it(deployed: Deployed) -> None:
    clients = deployed.clients(6 if HOLD_S else 4)
    silent = deployed.clients(14 if HOLD_S else 2)
    for one in clients:
        assert "Paris" in one.asks(QUESTION)
    time.sleep(1.0)  # their answers are heard to the end
    with coming_back(clients + silent):
        deployed.servers[0].process.send_signal(signal.SIGKILL)
        everybody = clients + silent
        until(lambda: sum(one.back_after is not None for one in everybody) >= len(everybody) // 2)
        cut = [one for one in everybody if one.cut_at is not None]
        others = [one for one in everybody if one not in cut]
        assert len(cut) == len(others) == len(everybody) // 2, "HAProxy gave each as many"
        for one in cut:
            assert one.back_after is not None and one.back_after < BACK_S
        for one in clients:
            assert one not in cut or one.knows(QUESTION, "Paris")
            assert "Paris" in one.asks(QUESTION)
        time.sleep(HOLD_S)
        assert all(one.cut_at is None for one in others)
    for one in everybody:
        assert "Paris" in one.asks(QUESTION)


def test_nobody_is_cut_off_while_all_servers_are_replaced(deployed: Deployed) -> None:
    clients = deployed.clients(6 if HOLD_S else 4)
    for one in clients:
        assert "Paris" in one.asks(QUESTION)
    for index in (0, 1):
        before = {id(one): one.client for one in clients}
        for one in clients:  # all are in the middle of a turn
            one.begins("Why is the sky blue?")
        with coming_back(clients):
            assert deployed.servers[index].stop() == 0
            deployed.servers[index] = deployed.start(index)
            moved = [one for one in clients if one.client is not before[id(one)]]
            assert moved, "the server had clients"
            for one in moved:
                old = before[id(one)]
                assert old.closed is not None and old.socket.close_code == 1001
                assert old.all("response.done")[-1]["response"]["status"] == "completed"
                assert one.knows(QUESTION, "Paris", "Why is the sky blue?")
            until(lambda: all(one.client.closed is None for one in clients))
    for one in clients:
        assert "Paris" in one.asks(QUESTION)
