"""The way to a server of chat completions: requests that run, and what goes wrong with them.

The engines' steps are short and synchronous, and a request is neither, so all of them run on an
event loop of their own, in one thread. A step takes what has come of its request, and waits for no
more than `STEP_S`. Whatever goes wrong is a `Trouble`, one line that says so. This module does not
know what is asked.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio.from_thread import BlockingPortal

from voiceloop.errors import ConfigError, EngineError
from voiceloop.llm.address import USUAL, Address
from voiceloop.llm.chatstream import ChatStream, Complaint, Garbled, Piece, complaint
from voiceloop.schema import nearest

if TYPE_CHECKING:
    import httpx2

    _Way = tuple[BlockingPortal, httpx2.AsyncClient, anyio.Event]

STEP_S = 0.02
"""A step waits no longer: other conversations and cancellations get their turn."""
CONNECT_S = 5.0
"""A server that has not taken a connection by then is out of reach."""
AGAIN_S = 0.5
"""After so long a request that failed is sent once more, unless the server names another time."""
PATIENCE_S = 3.0
"""Nobody waits longer than that for a server that is busy."""
GRACE_S = 0.5
"""So long a reply that is complete may wait for what the server still has to tell of it."""
MOST_TOLD = 65_536
"""Bytes that are read of a refusal."""
QUOTED = 200
"""Characters of what a server says that are passed on."""
_TOO_LONG = re.compile(
    r"context.{0,24}(length|size|window|exceed)|(exceed|maximum|max).{0,40}context|"
    r"(prompt|input|message)s?\b.{0,24}too (long|large)|too many (input )?tokens",
    re.IGNORECASE,
)


class Trouble(EngineError):
    """A request that came to nothing, or broke off."""

    def __init__(
        self,
        message: str,
        hint: str,
        *,
        again_s: float | None = None,
        too_long: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.again_s = again_s
        """To ask again after so many seconds may help; None: it will not."""
        self.too_long = too_long
        """What was asked does not fit into the model's context."""
        self.status = status
        """Of HTTP, where the server answered with one that stands for nothing else."""


class ChatServer:
    """The way to one server. Its methods may be called on any thread."""

    def __init__(self, where: Address, timeout_s: float) -> None:
        """A server that says nothing of a reply for `timeout_s` is given up.

        Raises ConfigError for proxies or certificates of the environment that cannot be used.
        """
        self.where = where
        self.models: list[str] = []
        """Names of the models that it has, once it has been asked."""
        self._timeout_s = timeout_s
        self._arrived = threading.Condition()
        """Notified whenever there is anything new of any reply."""
        started: Future[_Way] = Future()
        name, live = "voiceloop-llm-requests", (_live, where, started)
        threading.Thread(target=anyio.run, args=live, name=name, daemon=True).start()
        self._portal, self._client, over = started.result()
        # The thread ends when nobody speaks to the server any more, or with the program.
        weakref.finalize(self, _end, self._portal, over).atexit = False

    # ---- on any thread

    def look_up(self) -> None:
        """Ask which `models` there are: a server that is not there, or no server of this kind, is
        told at once. Raises Trouble."""
        try:
            self._portal.call(self._look_up)
        except Trouble as trouble:
            if trouble.status is None or trouble.status < 500:
                raise
            # It is there, and may well reply without being able to list what it has.

    def ask(self, body: Mapping[str, Any]) -> Answer:
        """Request a reply; to be closed."""

        def start(post: Callable[[Piece], None]) -> Future[None]:
            return self._portal.start_task_soon(self._run, body, post)

        return Answer(self._arrived, start)

    def instead_of(self, model: str) -> str:
        """A hint at the model that is meant by a name that the server does not know."""
        near = nearest(model, self.models)
        some = ", ".join(self.models[:8])
        return f"did you mean '{near}'?" if near else f"it has: {some}" if some else "see its log"

    # ---- on the thread of the requests

    async def _look_up(self) -> None:
        with anyio.move_on_after(CONNECT_S) as scope:
            async with self._requested("models") as answer:
                told = await _beginning(answer)
                try:
                    self.models = [str(one["id"]) for one in _json(told)["data"]]
                except (KeyError, TypeError, ValueError):
                    raise self._no_such_server(answer) from None
        if scope.cancelled_caught:
            raise self._silent(CONNECT_S)

    async def _run(self, body: Mapping[str, Any], post: Callable[[Piece], None]) -> None:
        """Post a reply, asking twice where nothing has come of it before it failed."""
        begun = False

        def note(piece: Piece) -> None:
            nonlocal begun
            begun = True
            post(piece)

        try:
            return await self._attempt(body, note)
        except Trouble as trouble:
            if begun or trouble.again_s is None:
                raise
            await anyio.sleep(trouble.again_s)
        await self._attempt(body, post)

    async def _attempt(self, body: Mapping[str, Any], post: Callable[[Piece], None]) -> None:
        stream = ChatStream()
        with anyio.move_on_after(self._timeout_s) as scope:
            async with self._requested("chat/completions", body) as answer:
                if "event-stream" not in answer.headers.get("Content-Type", "event-stream"):
                    raise self._no_such_server(answer)
                async for block in answer.aiter_bytes():
                    for piece in self._pieces(stream, block):
                        # What is said counts, and not that a connection is kept alive.
                        scope.deadline = anyio.current_time() + self._timeout_s
                        post(piece)
                    if stream.finished:  # read to its end, the connection serves again
                        soon = anyio.current_time() + GRACE_S
                        scope.deadline = min(scope.deadline, soon)
        if stream.finished:
            return
        if scope.cancelled_caught:
            raise self._silent(self._timeout_s)
        raise self._broke_off("the reply ends before it is complete")

    def _pieces(self, stream: ChatStream, block: bytes) -> list[Piece]:
        try:
            return stream.feed(block)
        except Garbled as error:
            raise Trouble(f"{self.where.host} sends {error}", "see the server's log") from None
        except Complaint as error:
            raise self._refused(None, str(error)) from None

    @asynccontextmanager
    async def _requested(
        self, path: str, body: Mapping[str, Any] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """The answer to a request that is not refused. Raises Trouble, from within too."""
        import httpx2

        url = f"{self.where.url}/{path}"
        if body is None:
            request = self._client.build_request("GET", url)
        else:
            content, kind = json.dumps(body), {"Content-Type": "application/json"}
            request = self._client.build_request("POST", url, content=content, headers=kind)
        try:
            async with aclosing(await self._client.send(request, stream=True)) as answer:
                if answer.status_code != 200:
                    raise await self._refusal(answer, str(body["model"]) if body else "")
                yield answer
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise self._unreachable(error) from None
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise self._broke_off(str(error).strip().rstrip(".") or type(error).__name__) from None

    # ---- what went wrong, as one line

    def _unreachable(self, error: Exception) -> Trouble:
        causes = list(_causes(error))
        broken = next((one for one in causes if isinstance(one, ssl.SSLError)), None)
        if broken is not None:
            why = re.sub(r"^\[.*?\] | \(_ssl.*\)$", "", str(broken))
            return Trouble(
                f"{self.where.host} cannot be reached safely ({why})",
                "does it speak https at all? SSL_CERT_FILE names certificates of your own",
            )
        named = not any(isinstance(one, socket.gaierror) for one in causes)
        why = "it takes no connection" if named else "there is no host of that name"
        return Trouble(f"{self.where.host} cannot be reached ({why})", USUAL, again_s=AGAIN_S)

    def _broke_off(self, why: str) -> Trouble:
        return Trouble(
            f"{self.where.host} broke off ({self._quoted(why)})",
            "ask again; if it stays so, see the server's log",
            again_s=AGAIN_S,
        )

    def _silent(self, seconds: float) -> Trouble:
        return Trouble(
            f"{self.where.host} has said nothing for {seconds:g} s",
            "see the server's log; llm.timeout_s is how long to wait",
            again_s=0.0,
        )

    def _no_such_server(self, answer: httpx2.Response) -> Trouble:
        kind = answer.headers.get("Content-Type", "").partition(";")[0] or "something else"
        return Trouble(
            f"{self.where.host} answers with {self._quoted(kind)}, not as a model's server does",
            f"check llm.base_url, which mostly ends in /v1: {USUAL}",
        )

    async def _refusal(self, answer: httpx2.Response, model: str) -> Trouble:
        told = await _beginning(answer)
        try:
            why = complaint(_json(told))
        except ValueError:
            plain = told.decode("utf-8", "replace").strip()
            why = "" if plain.startswith("<") else plain
        status, host = answer.status_code, self.where.host
        if 300 <= status < 400:
            return Trouble(
                f"{host} sends us elsewhere ({status}), where nothing is sent",
                "write the address that it means into llm.base_url",
            )
        if status == 429:
            return self._busy(answer.headers.get("Retry-After", ""), why)
        if status == 404 and model and "model" in why.lower():
            return Trouble(f"{host} has no model called '{model}' (404)", self.instead_of(model))
        return self._refused(status, why)

    def _refused(self, status: int | None, why: str) -> Trouble:
        """The server has refused with this status, or in the middle of a reply, and says `why`."""
        host, key = self.where.host, self.where.key_name
        if status in (401, 403):
            # What it says of a key may hold the key.
            what = "refuses the key" if self.where.key else "wants a key"
            return Trouble(f"{host} {what} ({status})", f"set {key} in the environment")
        if _TOO_LONG.search(why):
            return Trouble(
                f"what was said does not fit into the model's context: {self._quoted(why)}",
                "say less, or give the server's model a longer context",
                too_long=True,
            )
        if status == 404:
            return Trouble(
                f"{host} knows no such address (404): {self.where.url}",
                f"llm.base_url mostly ends in /v1: {USUAL}",
            )
        answers = f"answers {status}" if status else "has failed"
        said = f": {self._quoted(why)}" if why else ""
        again_s = None if status and status < 500 else AGAIN_S
        hint = "see the server's log"
        return Trouble(f"{host} {answers}{said}", hint, again_s=again_s, status=status)

    def _busy(self, after: str, why: str) -> Trouble:
        seconds = float(after) if re.fullmatch(r"\d{1,6}(\.\d+)?", after) else None
        told = "" if seconds is None else f", and wants to be left alone for {seconds:g} s"
        said = f": {self._quoted(why)}" if why else ""
        return Trouble(
            f"{self.where.host} has too much to do (429){told}{said}",
            "wait a little, or see what your plan allows",
            again_s=seconds if seconds is not None and seconds <= PATIENCE_S else None,
        )

    def _quoted(self, text: str) -> str:
        """What a server says, on one short line and without the key."""
        key = self.where.key
        plain = " ".join((text.replace(key, "…") if key else text).split())
        plain = "".join(char for char in plain if char.isprintable())
        return plain if len(plain) <= QUOTED else f"{plain[:QUOTED]}…"


class Answer:
    """A reply that is on its way."""

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
        """What has come since, after at most `STEP_S`; None when the reply is over.

        Raises Trouble once everything that came before it has been taken.
        """
        with self._arrived:
            if not self._pieces and not self._done.done():
                self._arrived.wait(STEP_S)
            over = self._done.done()  # first: what is posted before the end is there by then
            found, self._pieces = self._pieces, []
        if over and not found:
            return self._done.result()
        return found

    def close(self) -> None:
        """Nobody wants more of it: the connection closes, which tells the server to stop."""
        self._done.cancel()


async def _live(where: Address, started: Future[_Way]) -> None:
    """All that runs on the thread of the requests."""
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
    except Exception as error:  # whatever it reads there; it may hold the proxy's password
        what = "what the environment says of proxies or certificates cannot be used"
        hint = "see HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE"
        return started.set_exception(ConfigError(f"{what} ({type(error).__name__})", hint))
    async with client, BlockingPortal() as portal:
        over = anyio.Event()
        started.set_result((portal, client, over))
        await over.wait()


def _end(portal: BlockingPortal, over: anyio.Event) -> None:
    try:
        portal.start_task_soon(over.set)
    except RuntimeError:  # the thread of the requests was the last to know of the server
        over.set()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it came of, what that came of, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


async def _beginning(answer: httpx2.Response) -> bytes:
    """The body, if it is no longer than `MOST_TOLD`, or so much of it."""
    told = b""
    async for block in answer.aiter_bytes():
        told += block
        if len(told) >= MOST_TOLD:
            break
    return told


def _json(told: bytes) -> Any:
    try:
        return json.loads(told)
    except RecursionError:
        raise ValueError("too deep") from None
