"""Let a server read ahead: the history, and what the user has said so far of a turn.

The server keeps what it has read in its prompt cache, so the reply begins sooner. A request for
this asks for one token. llama.cpp's server also tells the probability of each token that may come
next, and so the probability that the user's turn is over. This module does not compose requests.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from concurrent.futures import Future, wait
from typing import Any

from voiceloop.llm.remote.chatclient import Reading
from voiceloop.llm.remote.chatrequest import Quirks
from voiceloop.llm.remote.chatserver import STEP_S, ChatServer, logger
from voiceloop.llm.remote.errors import RequestError

ENOUGH = 3
"""Number of replies, one after the other, of whose prompt nothing was cached, after which the
server is let read nothing ahead."""


class ReadAhead:
    """The requests with which one conversation lets its server read ahead, one at a time."""

    def __init__(self, server: ChatServer) -> None:
        self._server = server
        self._running: Future[Reading] | None = None
        self._off = server.where.metered  # nobody pays for guesses
        self._reads = False
        """Whether the server has read something of the turn ahead."""
        self._uncached = 0
        """Number of replies, one after the other, of whose prompt nothing was cached."""

    def read(
        self, body: Mapping[str, Any], text: str, quirks: Quirks
    ) -> Generator[None, None, Reading]:
        """Let the server read the messages in `body`, of which the last is the user's, with `text`
        at its end. Return what it tells. Only for a probability this waits for the server.

        While the server still reads an earlier request, do nothing: the next call has more words.
        """
        tells, earlier = self._server.tells_ends, self._running
        if earlier is not None and not (tells or earlier.done()):
            return Reading()
        found = self.end()
        if self._off:
            return found
        self._reads = True
        running = self._running = self._server.read(body, text, quirks)
        while tells and not running.done():
            yield None
            wait([running], STEP_S)
        if not tells:
            return found
        last = self.end()
        return Reading(last.ends, found.tokens + last.tokens)

    def end(self) -> Reading:
        """Stop reading ahead, and return what the last request has told. If it has failed, make no
        more."""
        running, self._running = self._running, None
        if running is None or running.cancel():  # this closes the connection, so the server stops
            return Reading()
        try:
            return running.result()
        except RequestError as failure:
            self._give_up(f"does not read ahead: {failure.message}")
            return Reading()

    def replied(self, cached: int | None) -> None:
        """Judge whether reading ahead gains anything. `cached` is the number of tokens of a reply's
        prompt that the server had in its cache, None if it does not tell."""
        reads, self._reads = self._reads, False
        self._uncached = self._uncached + 1 if reads and cached == 0 else 0
        if self._uncached == ENOUGH:
            self._give_up("has nothing in its cache of what it has read ahead")

    def _give_up(self, why: str) -> None:
        if not self._off:
            self._off = True
            logger.info("%s %s; it is not asked to any more", self._server.where.told, why)
