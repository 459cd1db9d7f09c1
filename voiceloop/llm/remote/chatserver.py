"""Send requests to a server of chat completions, and report failures.

Engines work in short synchronous steps, but a request is long and asynchronous. So all requests to
a server run on a separate thread with an event loop. A step takes the pieces of its reply that have
arrived, and waits no longer than `STEP_S`. Every failure is a `Trouble` with a one-line message.
This module does not compose requests.
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal

from voiceloop.errors import ConfigError
from voiceloop.foreign import parsed
from voiceloop.llm.remote import presence, troubles
from voiceloop.llm.remote.address import Address
from voiceloop.llm.remote.chatstream import (
    ChatStream,
    End,
    FirstWords,
    Loading,
    Piece,
    PromptUsage,
    Text,
)
from voiceloop.llm.remote.complaints import Complaint, Garbled, complaint, named
from voiceloop.llm.remote.manners import Manners
from voiceloop.llm.remote.toolcrumbs import StreamedCall
from voiceloop.llm.remote.troubles import Trouble
from voiceloop.llm.remote.turnends import OTHER_FORM, Reading, continued, turn_end
from voiceloop.schema import nearest

if TYPE_CHECKING:
    import httpx2

    _Started = tuple[BlockingPortal, httpx2.AsyncClient, TaskGroup, anyio.Event]

STEP_S = 0.02
"""Maximum time in seconds that a step waits for a piece. Other conversations must not wait longer,
and a reply that is cancelled must end soon."""
CONNECT_S = 5.0
"""Seconds in which a server must accept a connection. In `look_up` it must also list its models in
this time."""
LOADING_S = 2.0
"""Seconds of waiting after which it is reported that the server loads its model."""
GRACE_S = 0.5
"""Seconds to wait after a complete reply for the server's last data, such as token counts."""
MOST_TOLD, MOST_LISTED = 65_536, 16 << 20
"""Maximum numbers of bytes that are read of a response: `MOST_TOLD` of an error, `MOST_LISTED` of a
list of models or of a reply that is not streamed."""
VLLM = re.compile(rb'"owned_by"\s*:\s*"vllm"')
"""What only vLLM's list of models has."""
UNLISTED = (404, 405)
"""HTTP statuses of servers that do not list their models, but may reply. All statuses from 500 on
count as such too."""


class ChatServer:
    """An HTTP client of one server. Its methods may be called on any thread."""

    def __init__(self, where: Address, timeout_s: float) -> None:
        """Start the thread for requests to the server at `where`. A reply fails if no piece of it
        arrives for `timeout_s` seconds.

        Raises ConfigError if the environment sets proxies or certificates that cannot be used.
        """
        self.where = where
        self.models: list[str] = []
        """Names of the server's models; empty before `look_up` has requested them."""
        self.manners = Manners()
        """What the server refuses of requests that no client has a part in, such as `begin`'s."""
        self.tells_ends: bool | None = None
        """Whether the server tells probabilities of tokens, and so ends of turns; None if that is
        not known yet."""
        self._timeout_s = timeout_s
        self._is_vllm = False
        self._watched = False
        """Whether a task waits for the return of the server, because it may have gone."""
        self._arrived = threading.Condition()
        """Notified when a piece of any reply arrives or a reply ends."""
        started: Future[_Started] = Future()
        name, serve = "voiceloop-llm-requests", (_serve, where, started)
        threading.Thread(target=anyio.run, args=serve, name=name, daemon=True).start()
        self._portal, self._client, self._tasks, over = started.result()
        # The thread ends when this object is deleted, or with the program.
        weakref.finalize(self, _end, self._portal, over).atexit = False

    # ---- on any thread

    def look_up(self) -> None:
        """Request the list of `models`. This also shows whether the server can be reached.

        Raises Trouble if the server cannot be reached, refuses the key, or is no server of chat
        completions. A server that only cannot list its models raises nothing.
        """
        try:
            self._portal.call(self._look_up)
        except Trouble as trouble:
            if trouble.status is None or (trouble.status < 500 and trouble.status not in UNLISTED):
                raise
            # The server is there, and may reply even if it cannot list its models.

    def begin(self, body: Mapping[str, Any]) -> None:
        """Request a reply, wait for its first data, and end the request. Raises Trouble."""
        self._portal.call(self._run, body, self.manners, None)

    def ask(self, body: Mapping[str, Any], manners: Manners) -> PendingReply:
        """Request a reply without waiting for it. `manners` learns what the server refuses of it.
        The caller must close the result."""

        def start(post: Callable[[Piece], None]) -> Future[None]:
            return self._portal.start_task_soon(self._run, body, manners, post)

        return PendingReply(self._arrived, start)

    def read(self, body: Mapping[str, Any], text: str, manners: Manners) -> Future[Reading]:
        """Let the server read the messages in `body` without waiting for it. The last message is
        the user's, with `text` at its end. The result raises Trouble. Cancelling it stops the
        server."""
        return self._portal.start_task_soon(self._read, body, text, manners)

    def learn_ends(self, body: Mapping[str, Any], text: str) -> None:
        """Find out whether the server `tells_ends`. `body` and `text` are as in `read`. Raises
        Trouble."""
        self._portal.call(self._told_end, body, text)

    def instead_of(self, model: str) -> str:
        """Return a hint for the user if the server does not know `model`. It names a similar model,
        or some of the server's models, or the server's log."""
        near = nearest(model, self.models)
        some = ", ".join(self.models[:8])
        return f"did you mean '{near}'?" if near else f"it has: {some}" if some else "see its log"

    # ---- on the thread of the requests

    async def _look_up(self) -> None:
        with anyio.move_on_after(CONNECT_S) as scope:
            async with self._requested("models") as answer:
                content = await _beginning(answer, MOST_LISTED)
                self.models, self._is_vllm = _listed(content), VLLM.search(content) is not None
                if not self.models and "json" not in _kind(answer):
                    raise troubles.no_such_server(self.where, _kind(answer))
        if scope.cancelled_caught:
            raise troubles.silent(self.where, CONNECT_S, again=True)

    async def _run(
        self, body: Mapping[str, Any], manners: Manners, post: Callable[[Piece], None] | None
    ) -> None:
        """Pass the pieces of a reply to `post`. If `post` is None, request only the first data. If
        a local server may have gone, start to watch for its return."""
        try:
            await self._persist(body, manners, _timed(post) if post else None)
        except Trouble as trouble:
            if trouble.lost and self.where.loopback and not self._watched:
                self._watched = True
                server: weakref.ref[ChatServer] = weakref.ref(self)
                self._tasks.start_soon(self._watch, server, self.where.host)
            raise

    @staticmethod
    async def _watch(server: weakref.ref[ChatServer], host: str) -> None:
        """Report if the server has gone and when it is back. Stop when its `ChatServer` is
        deleted."""

        async def ask() -> None:
            if (there := server()) is None:
                await anyio.sleep_forever()  # until this thread ends, which is soon
            else:
                await there._look_up()

        await presence.watch(host, ask)
        if (there := server()) is not None:
            there._watched = False

    async def _read(self, body: Mapping[str, Any], text: str, manners: Manners) -> Reading:
        if self.tells_ends is not False:
            found = await self._told_end(manners.fitted(dict(body)), text)
            if found is not None:
                return found
        tokens = 0

        def count(piece: Piece) -> None:
            nonlocal tokens
            tokens += piece.tokens if isinstance(piece, PromptUsage) else 0

        await self._persist(body, manners, count)
        return Reading(None, tokens)

    async def _told_end(self, body: Mapping[str, Any], text: str) -> Reading | None:
        try:
            found = await (continued if self._is_vllm else turn_end)(self._answer, body, text)
        except OTHER_FORM:
            self.tells_ends = False
            return None
        except Trouble:
            if self.tells_ends:
                raise
            self.tells_ends = False  # most servers know no such request
            return None
        self.tells_ends = True
        return found

    async def _answer(self, path: str, body: Mapping[str, Any]) -> Any:
        async with self._requested(path, body) as answer:
            return parsed(await _beginning(answer, MOST_LISTED))

    async def _persist(
        self, body: Mapping[str, Any], manners: Manners, post: Callable[[Piece], None] | None
    ) -> None:
        """Pass the pieces of a reply to `post`, and repeat the request after some failures.

        A request is repeated only if no text and no call has come yet. It is repeated once if that
        may help, and for `llm.timeout_s` while the server loads its model. It is adapted and
        repeated after each refusal from which `manners` learns something.
        """
        begun, ended, asked_again, since = False, False, False, anyio.current_time()

        def note(piece: Piece) -> None:
            nonlocal begun, ended
            begun = begun or isinstance(piece, Text | StreamedCall)
            ended = ended or isinstance(piece, End)
            if post:
                post(piece)

        while True:
            request = manners.fitted(dict(body))
            try:
                return await self._attempt(request, note, whole=post is not None)
            except Trouble as trouble:
                if ended:  # what fails after the end of a reply does not matter
                    return
                if begun:
                    raise
                if trouble.complaint:
                    self._learn(trouble.complaint, request, manners)
                    if manners.fitted(dict(body)) != request:
                        continue
                waited = anyio.current_time() - since
                waits = trouble.loads and waited < self._timeout_s
                if waits and waited >= LOADING_S:
                    note(Loading())
                if trouble.again_s is None or (asked_again and not waits):
                    raise
                asked_again = asked_again or not waits
                await anyio.sleep(trouble.again_s)

    def _learn(self, complaint: Complaint, request: dict[str, Any], manners: Manners) -> None:
        for name in manners.learn(complaint, request):
            said = troubles.quoted(self.where, complaint.said)
            presence.logger.warning(
                "%s takes no %s, so none is sent: %s", self.where.told, name, said
            )

    async def _attempt(
        self, body: Mapping[str, Any], post: Callable[[Piece], None], *, whole: bool
    ) -> None:
        """Send one request, and pass the pieces of its reply to `post`: all pieces if `whole`,
        otherwise only those of the first data.

        A server that sends nothing at all may be loading its model, and would begin anew with
        another request. So it has twice `llm.timeout_s` for its first data.
        """
        stream, patience_s = ChatStream(), 2 * self._timeout_s
        with anyio.move_on_after(patience_s) as scope:
            async with (
                self._requested("chat/completions", body) as answer,
                aclosing(self._events(answer)) as blocks,
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
                    if not whole:
                        return
                    if stream.finished:  # a connection that is read to its end can be reused
                        soon = anyio.current_time() + GRACE_S
                        scope.deadline = min(scope.deadline, soon)
        for piece in self._pieces(stream, b""):
            post(piece)
        with suppress(Garbled, Complaint):  # some servers send no line end after the last event
            for piece in stream.feed(b"\n\n"):
                post(piece)
        if stream.finished:
            return
        if scope.cancelled_caught:
            raise troubles.silent(self.where, patience_s, again=patience_s == self._timeout_s)
        raise troubles.broke_off(self.where, "the reply ends before it is complete")

    def _pieces(self, stream: ChatStream, block: bytes) -> list[Piece]:
        try:
            return stream.feed(block)
        except Garbled as error:
            raise Trouble(f"{self.where.told} sends {error}", "see the server's log") from None
        except Complaint as error:
            raise troubles.refused(self.where, None, error) from None

    async def _events(self, answer: httpx2.Response) -> AsyncGenerator[bytes]:
        """Yield the bytes of the event stream. If the reply is not streamed, yield it as a single
        event."""
        if "event-stream" in (_kind(answer) or "event-stream"):
            async for block in answer.aiter_bytes():
                yield block
            return
        content = await _beginning(answer, MOST_LISTED) if "json" in _kind(answer) else b""
        try:
            body = parsed(content)
        except ValueError:
            body = None
        if not isinstance(body, dict) or not (body.get("choices") or complaint(body)):
            raise troubles.no_such_server(self.where, _kind(answer))
        yield b"data: %s\n\ndata: [DONE]\n\n" % b" ".join(content.splitlines())

    @asynccontextmanager
    async def _requested(
        self, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request and yield its response. Raises Trouble, also while the caller reads the
        response."""
        import httpx2

        # llama.cpp's own requests are not below /v1.
        root = self.where.url.removesuffix("/v1") if path.startswith("/") else f"{self.where.url}/"
        url = f"{root}{path}"
        if body is None:
            request = self._client.build_request("GET", url)
        else:
            content, kind = json.dumps(body), {"Content-Type": "application/json"}
            request = self._client.build_request("POST", url, content=content, headers=kind)
        try:
            async with aclosing(await self._client.send(request, stream=True)) as answer:
                if answer.status_code != 200:
                    raise await self._refusal(answer, str(body.get("model", "")) if body else "")
                yield answer
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise troubles.unreachable(self.where, error) from None
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            why = str(error).strip().rstrip(".") or type(error).__name__
            raise troubles.broke_off(self.where, why) from None

    async def _refusal(self, answer: httpx2.Response, model: str) -> Trouble:
        content = await _beginning(answer)
        try:
            body = parsed(content)
            why, names = complaint(body), named(body)
        except ValueError:
            plain = content.decode("utf-8", "replace").strip()
            why, names = "" if plain.startswith("<") else plain, ""
        status, host = answer.status_code, self.where.told
        after = answer.headers.get("Retry-After", "")
        if status == 503 and "loading" in why.lower():
            return troubles.loading(self.where, why)
        if status == 429 or (status == 503 and after):
            return troubles.busy(self.where, status, after, why)
        if status == 404 and model and "model" in why.lower():
            told = f": {troubles.quoted(self.where, why)}"
            return Trouble(
                f"{host} has no model called '{model}' (404){told}", self.instead_of(model)
            )
        return troubles.refused(self.where, status, Complaint(why, names))


class PendingReply:
    """A requested reply, of which pieces arrive on the thread of the requests."""

    def __init__(
        self,
        arrived: threading.Condition,
        start: Callable[[Callable[[Piece], None]], Future[None]],
    ) -> None:
        self._arrived = arrived
        self._pieces: list[Piece] = []
        self._done = start(self._post)
        self._done.add_done_callback(self._notify)

    def _post(self, piece: Piece) -> None:
        with self._arrived:
            self._pieces.append(piece)
            self._arrived.notify_all()

    def _notify(self, done: Future[None]) -> None:
        with self._arrived:
            self._arrived.notify_all()

    def next(self) -> list[Piece] | None:
        """Return the pieces that have arrived since the last call. Wait at most `STEP_S` for one.
        Return None when the reply is over.

        Raises Trouble for a failed request, after all pieces before the failure have been returned.
        """
        with self._arrived:
            if not self._pieces and not self._done.done():
                self._arrived.wait(STEP_S)
            over = self._done.done()  # first, so that no piece posted before the end is missed
            found, self._pieces = self._pieces, []
        if over and not found:
            return self._done.result()
        return found

    def close(self) -> None:
        """Close the connection, which tells the server to stop."""
        self._done.cancel()


async def _serve(where: Address, started: Future[_Started]) -> None:
    """Run all requests to the server at `where` on this thread, until its `ChatServer` is
    deleted."""
    import httpx2

    try:
        client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {where.key}"} if where.key else {},
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
            limits=httpx2.Limits(max_connections=None),
            # A proxy between two programs of one machine would see the key.
            mounts={"http://": None, "https://": None} if where.loopback else None,
            follow_redirects=False,
        )
    except Exception as error:  # of any kind; its text may hold the proxy's password
        what = "what the environment says of proxies or certificates cannot be used"
        hint = "see HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE"
        return started.set_exception(ConfigError(f"{what} ({type(error).__name__})", hint))
    async with client, BlockingPortal() as portal, anyio.create_task_group() as tasks:
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


def _kind(answer: httpx2.Response) -> str:
    """Return the content type of a response."""
    return answer.headers.get("Content-Type", "")


async def _beginning(answer: httpx2.Response, most: int = MOST_TOLD) -> bytes:
    """Return the beginning of a response's body. Reading stops once there are `most` bytes or
    more."""
    content = b""
    async for block in answer.aiter_bytes():
        content += block
        if len(content) >= most:
            break
    return content


def _listed(content: bytes) -> list[str]:
    """Return the names in a list of models. Return none if the list is incomplete or has an unknown
    form."""
    try:
        listed = parsed(content)
    except ValueError:
        return []
    if isinstance(listed, dict):
        keys = cast("dict[str, object]", listed)
        listed = keys.get("data") or keys.get("models")
    every = cast("list[object]", listed) if isinstance(listed, list) else []
    entries = [cast("dict[str, object]", one) for one in every if isinstance(one, dict)]
    names = (one.get("id") or one.get("name") for one in entries)
    return [name for name in names if isinstance(name, str) and name.isprintable()]
