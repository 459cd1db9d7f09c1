"""Two servers behind HAProxy, as deploy/haproxy.cfg has it: one dies, or is replaced.

Nobody else's conversation is disturbed, and whoever was on it goes on at the other server.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import pytest
from websockets.exceptions import InvalidHandshake

from tests.server.serving import PATIENCE_S, Client, Serving, free_port, proxied, serving, until

pytestmark = pytest.mark.real

KEY = "k" * 32
HEADERS = {"Authorization": f"Bearer {KEY}"}
QUESTION = "What is the capital of France?"
BACK_S = 3.0
"""Seconds within which a client whose server has died is in its conversation again."""
HOLD_S = float(os.environ.get("VOICELOOP_HOLD_S", "0"))
"""Seconds for which the other connections are held after that."""
OPTIONS = (
    *("--behind-proxy", "--server.max-sessions", "24", "--server.max-sessions-per-key", "40"),
    *("--server.max-parked-per-key", "40", "--server.drain-s", "20"),
)


class Resuming:
    """A client that comes back when its connection breaks, as the page does."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.client = self._connected()
        self.client.update(voiceloop={"resume": True})
        self.token = self._token()
        self.cut_at: float | None = None
        """When the connection broke; None while it has not."""
        self.back_after: float | None = None
        """Seconds from then until the conversation was there again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.client.__exit__(None, None, None)

    def _connected(self) -> Client:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                one = Client(self._url, additional_headers=HEADERS)
            except (OSError, InvalidHandshake, EOFError):  # perhaps the server is not there
                assert time.monotonic() < deadline
                time.sleep(0.05)
                continue
            one.wait("session.created")
            return one

    def _token(self) -> str:
        token = self.client.wait("voiceloop.session.token")["token"]
        self.client.send("voiceloop.session.token.received")
        return token

    def watch(self, over: Callable[[], bool]) -> None:
        """Come back whenever the connection breaks, until it is over."""
        while not over():
            if self.client.closed is None:
                time.sleep(0.01)
                continue
            self.cut_at = time.monotonic()
            self.client.__exit__(None, None, None)
            self.client = self._connected()
            self.client.send("voiceloop.resume", token=self.token)
            self.client.wait("voiceloop.session.resumed")
            self.token = self._token()
            self.back_after = time.monotonic() - self.cut_at

    def knows(self, *words: str) -> bool:
        """Whether the conversation so far, as the server tells it, has these words."""
        items = [event["item"] for event in self.client.all("conversation.item.done")]
        return all(word in str(items) for word in words)

    def asks(self, question: str) -> str:
        """The text of the answer to a question."""
        response = self.client.write(question)
        assert response["status"] == "completed"
        return str(response["output"])


class Deployed:
    """Two servers, and HAProxy in front of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = [free_port(), free_port()]
        self.servers = list[Serving]()
        self.stack = ExitStack()
        self.port = free_port()
        self.url = f"ws://localhost:{self.port}/v1/realtime"

    def start(self, index: int) -> Serving:
        """Start one of the servers at its port."""
        store = str(self.folder / "sessions.db")
        options = (*OPTIONS, "--server.store", store, "--allow-host", f"localhost:{self.port}")
        return self.stack.enter_context(
            serving(self.folder, *options, port=self.ports[index], VOICELOOP_API_KEY=KEY)
        )

    def clients(self, count: int) -> list[Resuming]:
        """Clients, each on the server that has the fewest."""
        return [self.stack.enter_context(Resuming(self.url)) for _ in range(count)]

    @contextmanager
    def coming_back(self, clients: list[Resuming]) -> Iterator[None]:
        """Let clients come back whenever they are cut off, while the block lasts."""
        over = False
        with ThreadPoolExecutor(len(clients)) as pool:
            watches = [pool.submit(one.watch, lambda: over) for one in clients]
            try:
                yield
            finally:
                over = True
            for watch in watches:
                watch.result()


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
    with deployed.coming_back(clients + silent):
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
            one.client.create("Why is the sky blue?")
            one.client.send("response.create")
        with deployed.coming_back(clients):
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
