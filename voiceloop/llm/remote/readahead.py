"""Let a server read ahead: the history, and what the user has said so far of a turn.

The server keeps what it has read in its prompt cache, so the reply begins sooner. A request for
this asks for one token. llama.cpp's server also tells the probability of each token that may come
next, and so the probability that the user's turn is over. This module does not compose requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping
from concurrent.futures import Future, wait
from statistics import median
from typing import Any

from voiceloop.llm.remote.chatclient import Reading
from voiceloop.llm.remote.chatrequest import Quirks
from voiceloop.llm.remote.chatserver import STEP_S, ChatServer, logger
from voiceloop.llm.remote.errors import RequestError

WITHOUT = 8
"""One of so many turns is not read ahead, to see what reading ahead gains."""
ENOUGH = 3
"""Number of replies, with and without reading ahead, after which it is judged."""


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
        self._first_s = {reads: deque[float](maxlen=2 * ENOUGH) for reads in (True, False)}
        """Seconds to the first words of the latest replies, with and without reading ahead."""

    def read(
        self, body: Mapping[str, Any], text: str, turn: int, quirks: Quirks
    ) -> Generator[None, None, Reading]:
        """Let the server read the messages in `body`, of which the last is the user's, with `text`
        at its end. Return what it tells. Only for a probability this waits for the server.

        While the server still reads an earlier request, do nothing: the next call has more words.
        """
        tells, earlier = self._server.tells_ends, self._running
        if earlier is not None and not (tells or earlier.done()):
            return Reading()
        found = self.end()
        if self._off or (not tells and turn % WITHOUT == 0):
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

    def replied(self, first_s: float, cached: int | None) -> None:
        """Judge what reading ahead gains. `first_s` are the seconds to the first words of a reply,
        and `cached` is the number of tokens of its prompt that the server had in its cache, None if
        it does not tell."""
        reads, self._reads = self._reads, False
        self._first_s[reads].append(first_s)
        self._uncached = self._uncached + 1 if reads and cached == 0 else 0
        if self._uncached == ENOUGH:
            self._give_up("has nothing in its cache of what it has read ahead")
        elif min(map(len, self._first_s.values())) >= ENOUGH:
            ahead, plain = (median(self._first_s[reads]) for reads in (True, False))
            if ahead > plain:
                self._give_up("answers later when it has read ahead")

    def _give_up(self, why: str) -> None:
        if not self._off:
            self._off = True
            logger.info("%s %s; it is not asked to any more", self._server.where.told, why)
