"""Request replies of a server of chat completions, and report when the server has gone and is back.

Engines work in short synchronous steps, but a request is long and asynchronous. So all requests to
a server run on a separate thread with an event loop. A step takes the pieces of its reply that have
arrived, and waits no longer than `STEP_S`. Every failure is a `RequestError` with a one-line
message. Reports go to the log, or to the view of a running conversation. This module does not
compose requests.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal

from voiceloop.errors import ConfigError
from voiceloop.llm.remote import errors
from voiceloop.llm.remote.chatclient import OTHER_FORM, ChatClient, Reading
from voiceloop.llm.remote.chatrequest import Quirks
from voiceloop.llm.remote.chatstream import (
    ChatStream,
    End,
    FirstWords,
    Loading,
    Piece,
    PromptUsage,
    StreamedCall,
    Text,
)
from voiceloop.llm.remote.errors import Garbled, ReportedError, RequestError
from voiceloop.llm.remote.servers import Address

logger = logging.getLogger(__name__)
_Started = tuple[BlockingPortal, ChatClient, TaskGroup, anyio.Event]

STEP_S = 0.02
"""Maximum time in seconds that a step waits for a piece. Other conversations must not wait longer,
and a reply that is cancelled must end soon."""
LOADING_S = 2.0
"""Seconds of waiting after which it is reported that the server loads its model."""
GRACE_S = 0.5
"""Seconds to wait after a complete reply for the server's last data, such as token counts."""
UNLISTED = (404, 405)
"""HTTP statuses of servers that do not list their models, but may reply. All statuses from 500 on
count as such too."""

EVERY_S = 2.0
"""Seconds between two checks of a server that has gone."""
LOADING = 503
"""HTTP status of a server that runs but cannot reply yet."""


class ChatServer:
    """The requests to one server, on a thread of their own. The methods may be called on any
    thread."""

    def __init__(self, where: Address, timeout_s: float) -> None:
        """Start the thread for requests to the server at `where`. A reply fails if no piece of it
        arrives for `timeout_s` seconds.

        Raises ConfigError if the environment sets proxies or certificates that cannot be used.
        """
        self.where = where
        self.quirks = Quirks()
        """What the server refuses of requests that no client has a part in: those at the start."""
        self.tells_ends: bool | None = None
        """Whether the server tells probabilities of tokens, and so ends of turns; None if that is
        not known yet."""
        self._timeout_s = timeout_s
        started: Future[_Started] = Future()
        name, serve = "voiceloop-llm-requests", (_serve, where, started)
        threading.Thread(target=anyio.run, args=serve, name=name, daemon=True).start()
        self._portal, self.client, self._tasks, over = started.result()
        # The thread ends when this object is deleted, or with the program.
        weakref.finalize(self, _end, self._portal, over).atexit = False

    # ---- on any thread

    def look_up(self) -> None:
        """Request the list of `models`. This also shows whether the server can be reached.

        Raises RequestError if the server cannot be reached, refuses the key, or is no server of
        chat completions. A server that only cannot list its models raises nothing.
        """
        try:
            self._portal.call(self.client.look_up)
        except RequestError as failure:
            if failure.status is None or (failure.status < 500 and failure.status not in UNLISTED):
                raise
            # The server is there, and may reply even if it cannot list its models.

    def ask(self, body: Mapping[str, Any], quirks: Quirks) -> PendingReply:
        """Request a reply without waiting for it. `quirks` learns what the server refuses of it.
        The caller must close the result."""
        pieces = SimpleQueue[Piece | None]()
        done = self._portal.start_task_soon(self._run, body, quirks, pieces.put)
        done.add_done_callback(lambda _: pieces.put(None))
        return PendingReply(pieces, done)

    def read(self, body: Mapping[str, Any], text: str, quirks: Quirks) -> Future[Reading]:
        """Let the server read the messages in `body` without waiting for it. The last message is
        the user's, with `text` at its end. The result raises RequestError. Cancelling it stops the
        server."""
        return self._portal.start_task_soon(self._read, body, text, quirks)

    def learn_ends(self, body: Mapping[str, Any], text: str) -> None:
        """Find out whether the server `tells_ends`. `body` and `text` are as in `read`. Raises
        RequestError."""
        self._portal.call(self._told_end, body, text)

    # ---- on the thread of the requests

    async def _run(
        self, body: Mapping[str, Any], quirks: Quirks, post: Callable[[Piece], None]
    ) -> None:
        """Pass the pieces of a reply to `post`. If a local server may have gone, start to watch for
        its return."""
        try:
            await self._persist(body, quirks, _timed(post))
        except RequestError as failure:
            if failure.kind == "lost" and self.where.loopback and not self.client.watched:
                self.client.watched = True
                self._tasks.start_soon(watch, self.client)
            raise

    async def _read(self, body: Mapping[str, Any], text: str, quirks: Quirks) -> Reading:
        if self.tells_ends is not False:
            found = await self._told_end(quirks.fitted(dict(body)), text)
            if found is not None:
                return found
        tokens = 0

        def count(piece: Piece) -> None:
            nonlocal tokens
            tokens += piece.tokens if isinstance(piece, PromptUsage) else 0

        await self._persist(body, quirks, count)
        return Reading(None, tokens)

    async def _told_end(self, body: Mapping[str, Any], text: str) -> Reading | None:
        try:
            found = await self.client.turn_end(body, text)
        except OTHER_FORM:
            self.tells_ends = False
            return None
        except RequestError:
            if self.tells_ends:
                raise
            self.tells_ends = False  # most servers know no such request
            return None
        self.tells_ends = True
        return found

    async def _persist(
        self, body: Mapping[str, Any], quirks: Quirks, post: Callable[[Piece], None]
    ) -> None:
        """Pass the pieces of a reply to `post`, and repeat the request after some failures.

        A request is repeated only if no text and no call has come yet. It is repeated once if that
        may help, and for `llm.timeout_s` while the server loads its model. It is adapted and
        repeated after each refusal from which `quirks` learns something.
        """
        begun, ended, asked_again, since = False, False, False, anyio.current_time()

        def note(piece: Piece) -> None:
            nonlocal begun, ended
            begun = begun or isinstance(piece, Text | StreamedCall)
            ended = ended or isinstance(piece, End)
            post(piece)

        while True:
            request = quirks.fitted(dict(body))
            try:
                return await self._attempt(request, note)
            except RequestError as failure:
                if ended:  # what fails after the end of a reply does not matter
                    return
                if begun:
                    raise
                if failure.reported:
                    self._learn(failure.reported, request, quirks)
                    if quirks.fitted(dict(body)) != request:
                        continue
                waited = anyio.current_time() - since
                waits = failure.kind == "loading" and waited < self._timeout_s
                if waits and waited >= LOADING_S:
                    note(Loading())
                if failure.again_s is None or (asked_again and not waits):
                    raise
                asked_again = asked_again or not waits
                await anyio.sleep(failure.again_s)

    def _learn(self, reported: ReportedError, request: dict[str, Any], quirks: Quirks) -> None:
        for name in quirks.learn(reported, request):
            said = errors.quoted(self.where, reported.said)
            logger.warning("%s takes no %s, so none is sent: %s", self.where.told, name, said)

    async def _attempt(self, body: Mapping[str, Any], post: Callable[[Piece], None]) -> None:
        """Send one request, and pass the pieces of its reply to `post`.

        A server that sends nothing at all may be loading its model, and would begin anew with
        another request. So it has twice `llm.timeout_s` for its first data.
        """
        stream, patience_s = ChatStream(), 2 * self._timeout_s
        with anyio.move_on_after(patience_s) as scope:
            async with (
                self.client.requested("chat/completions", body) as answer,
                aclosing(self.client.events(answer)) as blocks,
            ):
                async for block in blocks:
                    if patience_s > self._timeout_s:
                        patience_s = self._timeout_s
                        scope.deadline = anyio.current_time() + patience_s
                    for piece in self._pieces(stream, block):
                        # Only pieces of the reply count, not data that keeps a connection alive.
                        if not isinstance(piece, PromptUsage):
                            scope.deadline = anyio.current_time() + self._timeout_s
                        post(piece)
                    if stream.finished:  # a connection that is read to its end can be reused
                        soon = anyio.current_time() + GRACE_S
                        scope.deadline = min(scope.deadline, soon)
        for piece in self._pieces(stream, b""):
            post(piece)
        with suppress(Garbled, ReportedError):  # some servers send no line end after the last event
            for piece in stream.feed(b"\n\n"):
                post(piece)
        if stream.finished:
            return
        if scope.cancelled_caught:
            raise errors.silent(self.where, patience_s, again=patience_s == self._timeout_s)
        raise errors.broke_off(self.where, "the reply ends before it is complete")

    def _pieces(self, stream: ChatStream, block: bytes) -> list[Piece]:
        try:
            return stream.feed(block)
        except Garbled as error:
            raise RequestError(f"{self.where.told} sends {error}", "see the server's log") from None
        except ReportedError as error:
            raise errors.refused(self.where, None, error) from None


class PendingReply:
    """A requested reply, of which pieces arrive on the thread of the requests."""

    def __init__(self, pieces: SimpleQueue[Piece | None], done: Future[None]) -> None:
        """`pieces` gets the pieces, and None at the end. `done` has the failure, if any."""
        self._pieces = pieces
        self._done = done
        self._over = False

    def next(self) -> list[Piece] | None:
        """Return the pieces that have arrived since the last call. Wait at most `STEP_S` for one.
        Return None when the reply is over.

        Raises RequestError for a failed request, after all pieces before the failure have been
        returned.
        """
        if self._over:
            return self._done.result()
        found, patience_s = list[Piece](), STEP_S
        with suppress(Empty):
            while (piece := self._pieces.get(timeout=patience_s)) is not None:
                found.append(piece)
                patience_s = 0.0
            self._over = True
        return found

    def close(self) -> None:
        """Close the connection, which tells the server to stop."""
        self._done.cancel()


async def _serve(where: Address, started: Future[_Started]) -> None:
    """Run all requests to the server at `where` on this thread, until its `ChatServer` is
    deleted."""
    try:
        client = ChatClient(where)
    except ConfigError as error:
        return started.set_exception(error)
    async with (
        aclosing(client),
        BlockingPortal() as portal,
        anyio.create_task_group() as tasks,
    ):
        over = anyio.Event()
        started.set_result((portal, client, tasks, over))
        await over.wait()
        tasks.cancel_scope.cancel()


def _timed(post: Callable[[Piece], None]) -> Callable[[Piece], None]:
    """Return a function that passes pieces on to `post`, with `FirstWords` before the first ones.
    Their time is counted from now on."""
    since: float | None = anyio.current_time()

    def passed_on(piece: Piece) -> None:
        nonlocal since
        if since is not None and isinstance(piece, Text | StreamedCall):
            post(FirstWords(anyio.current_time() - since))
            since = None
        post(piece)

    return passed_on


def _end(portal: BlockingPortal, over: anyio.Event) -> None:
    try:
        portal.start_task_soon(over.set)
    except RuntimeError:  # the last reference was dropped on the thread of the requests
        over.set()


# Whether the server is there ---------------------------------------------------------------------


async def watch(client: ChatClient) -> None:
    """Wait until the server of `client` is there. If it is not there at first, report that, and
    later its return.

    A server that refuses to list its models is there, unless the status is `LOADING`.
    """
    gone = False
    while why := await _absence(client):
        if not gone:
            logger.warning(
                "the language model has gone, and the conversation goes on when it is back: %s", why
            )
            gone = True
        await anyio.sleep(EVERY_S)
    client.watched = False
    if gone:
        logger.warning("the language model is back at %s", client.where.host)


async def _absence(client: ChatClient) -> str:
    """Return why the server is not there; empty if it is."""
    try:
        await client.look_up()
    except RequestError as failure:
        return failure.message if failure.status in (None, LOADING) else ""
    return ""


@asynccontextmanager
async def told_to(tell: Callable[[str], None]) -> AsyncGenerator[None]:
    """Pass all reports to `tell` while the context lasts, and not to the log. `tell` is called on
    this event loop."""
    async with BlockingPortal() as portal:
        handler = _ReportHandler(partial(portal.start_task_soon, tell))
        logger.addHandler(handler)
        logger.propagate = False
        try:
            yield
        finally:
            logger.propagate = True
            logger.removeHandler(handler)


class _ReportHandler(logging.Handler):
    def __init__(self, tell: Callable[[str], object]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the message to `tell`. This is called on the thread of the requests."""
        with suppress(RuntimeError):  # the conversation has just ended
            self._tell(record.getMessage())
