"""A client that comes back when its connection breaks, and resumes its session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Self

from websockets.exceptions import InvalidHandshake

from tests.server.serving import KEY, PATIENCE_S, Client

HEADERS = {"Authorization": f"Bearer {KEY}"}
QUESTION = "What is the capital of France?"


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

    def begins(self, question: str) -> None:
        """Ask a question, and wait until the server answers it."""
        since = len(self.client.events)
        self.client.create(question)
        self.client.send("response.create")
        self.client.wait("response.created", since=since)

    def asks(self, question: str) -> str:
        """The text of the answer to a question."""
        response = self.client.write(question)
        assert response["status"] == "completed"
        return str(response["output"])


@contextmanager
def coming_back(clients: Sequence[Resuming]) -> Iterator[None]:
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
