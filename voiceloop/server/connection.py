"""One socket of one client: a task that reads, a task that writes, and a session between them.

The connection holds the client to its limits and answers what is wrong with an error; what events
mean, `dialogue` knows. It ends when the socket does, when a limit is reached, or when the client
comes back on another one.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Protocol

import anyio
import anyio.lowlevel
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from voiceloop.config import ServerConfig
from voiceloop.errors import ProtocolError
from voiceloop.realtime.client_events import (
    ClientEvent,
    InputAudioAppend,
    SessionUpdate,
    parse,
    parse_binary,
)
from voiceloop.realtime.extensions import Resume, SessionResumed, SessionToken
from voiceloop.realtime.ids import NewId
from voiceloop.realtime.session_events import Error, ErrorDetails
from voiceloop.server.dialogue import Dialogue
from voiceloop.server.limits import Budget, Kind, Refusal
from voiceloop.server.metrics import Metrics
from voiceloop.server.outbox import Outbox
from voiceloop.server.resume import GONE, Grant, Loss
from voiceloop.server.resume import Session as Kept
from voiceloop.server.sound import RATE
from voiceloop.session import Session

logger = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""A client that is ahead of its limits by no more than this is read later; by more, it is told."""
GOODBYE_S = 1.0
"""A client has so long to read what was said last, and so long again to agree that it is over."""
MOST_ERRORS = 100
"""Messages refused in a row after which there is nothing left to say."""
POLICY, INTERNAL, AWAY = 1008, 1011, 1001
"""Close codes."""


class Lobby(Protocol):
    """Where sessions are while no connection has them."""

    def begin(self, own: Connection) -> Grant[Dialogue, Connection]:
        """A session for a new client."""
        ...

    def resume(
        self, token: str, own: Connection
    ) -> Grant[Dialogue, Connection] | Loss[Dialogue, Connection]:
        """The session that `token` is for; the one that the connection began with is over then."""
        ...

    def delivered(self, own: Connection) -> None:
        """The client has the newest token."""
        ...

    async def forget(self, dialogue: Dialogue) -> None:
        """A session is over, and nothing runs in it any more."""
        ...


class Connection:
    """Runs once, for as long as its socket lasts."""

    def __init__(
        self,
        socket: ServerConnection,
        limits: ServerConfig,
        metrics: Metrics,
        new_id: NewId,
        *,
        key: str | None,
        lobby: Lobby,
    ) -> None:
        """`key` is the id of the API key that the client showed."""
        self.key = key
        self.resumable = False
        """The client has a token."""
        self.over = anyio.Event()
        """Set once nothing of the session runs here any more."""
        self._lobby = lobby
        grant = lobby.begin(self)
        self.kept: Kept[Dialogue, Connection] = grant.session
        self._token = grant.token
        self._socket = socket
        self._limits = limits
        self._metrics = metrics
        self._outbox = Outbox(new_id, metrics.sent)
        self._budget = Budget(limits, anyio.current_time())
        self._scope = anyio.CancelScope()
        self._session_scope = anyio.CancelScope()
        self._conversed = anyio.Event()
        """Set once the session has ended."""
        self._closing: tuple[int, str] = (1000, "")
        self._silent = True
        """Nothing has come yet."""
        self._heard = True
        """Something has come since the last ping."""
        self._errors = 0

    @property
    def dialogue(self) -> Dialogue:
        """The conversation."""
        return self.kept.payload

    def close(self, code: int, reason: str) -> None:
        """End the connection from this side."""
        self._closing = (code, reason)
        self._scope.cancel()

    async def run(self) -> None:
        """Serve the client until either side has enough."""
        broken = False
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._write)
                    tasks.start_soon(self._watch)
                    tasks.start_soon(self._look_after)
                    tasks.start_soon(self._converse, self._attached(anew=True))
                    self._tasks = tasks
                    try:
                        async for message in self._socket:
                            await self._read(message)
                    except ConnectionClosed:
                        broken = True
                    tasks.cancel_scope.cancel()
        finally:
            self.dialogue.detach()
            self.over.set()
        if not broken:
            await self._say_goodbye()

    async def _say_goodbye(self) -> None:
        """Send what was said last, such as why this is the end, and close the socket."""
        self._outbox.end()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ignore)
            with anyio.move_on_after(GOODBYE_S):
                await self._send()
            with anyio.move_on_after(GOODBYE_S):
                await self._socket.close(*self._closing)
            tasks.cancel_scope.cancel()

    async def _ignore(self) -> None:
        # Otherwise the client's goodbye would wait behind whatever else it has said.
        with suppress(ConnectionClosed):
            async for _ in self._socket:
                pass

    def _attached(self, *, anew: bool) -> Session:
        self._conversed = anyio.Event()
        return self.dialogue.attach(self._outbox, anew=anew)

    async def _converse(self, session: Session) -> None:
        try:
            with anyio.CancelScope() as self._session_scope:
                await session.run()
        except Exception:
            logger.exception("a session broke")
            self._fail("the session broke; connect again", INTERNAL)
        finally:
            self._conversed.set()

    async def _write(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send)
            await self._outbox.overrun.wait()
            self.close(POLICY, "the client reads too slowly")

    async def _send(self) -> None:
        # Whoever reads finds the connection closed too, and ends it.
        with suppress(ConnectionClosed):
            await self._outbox.run(self._socket.send)

    async def _watch(self) -> None:
        """End the connection of a client that is idle, or has been here for long enough."""
        while (refusal := self._budget.over(anyio.current_time())) is None:  # noqa: ASYNC110
            await anyio.sleep_until(self._budget.ends_at())  # which may be later by then
        self._metrics.refused(refusal.reason)
        self.close(POLICY, refusal.text)

    async def _look_after(self) -> None:
        """End the connection of a client that is not there any more.

        Whoever is says something, or answers a ping. The ping itself has to get through: behind
        what a vanished client does not read, it would wait for ever.
        """
        while True:
            await anyio.sleep(self._limits.ping_s)
            self._heard = False
            with suppress(ConnectionClosed), anyio.move_on_after(self._limits.ping_s) as asked:
                await (await self._socket.ping())
            if asked.cancelled_caught and not self._heard:
                self.close(INTERNAL, f"no answer to a ping in {self._limits.ping_s:g} s")

    async def _read(self, message: str | bytes) -> None:
        self._heard = True
        await anyio.lowlevel.checkpoint()  # others are served between two messages of one client
        await self._outbox.room()
        await self._within(Kind.MESSAGES, 1)
        event_id = None
        try:
            event = parse(message) if isinstance(message, str) else parse_binary(message)
            event_id = event.event_id
            await self._do(event)
            self._errors = 0
        except ProtocolError as error:
            self._refuse(error, event_id)
        self._silent = False

    async def _do(self, event: ClientEvent) -> None:
        if isinstance(event, Resume) and self._silent:
            await self._take_up(event)
            return
        if isinstance(event, InputAudioAppend):
            seconds = len(event.audio) / 2 / RATE
            await self._within(Kind.AUDIO, seconds)
            self._metrics.heard(seconds)
            if self.dialogue.microphone.backlog_s + seconds > self._limits.audio_backlog_s:
                raise ProtocolError(
                    f"more than {self._limits.audio_backlog_s:g} s of audio wait to be recognised",
                    "send audio as it is recorded",
                    code="rate_limit_exceeded",
                )
        self.dialogue.handle(event)
        if isinstance(event, SessionUpdate):
            self._outbox.binary = self.dialogue.settings.voiceloop.binary_audio
            if self.dialogue.settings.voiceloop.resume and not self.resumable:
                self._give(self._token)

    async def _within(self, kind: Kind, amount: float) -> None:
        """Wait until the client may have `amount`; one that is far ahead of that is told."""
        while refusal := self._budget.spend(kind, amount, anyio.current_time()):
            if refusal.retry_after_s is None or refusal.retry_after_s > PATIENCE_S:
                self._metrics.refused(refusal.reason)
                raise _too_much(refusal)
            await anyio.sleep(refusal.retry_after_s)

    def charge(self, kind: Kind, tokens: float) -> None:
        """The session has cost so many tokens; too many end it."""
        if refusal := self._budget.charge(kind, tokens, anyio.current_time()):
            self._metrics.refused(refusal.reason)
            self._fail(refusal.text, POLICY)

    def _refuse(self, error: ProtocolError, event_id: str | None) -> None:
        self._metrics.refused_message(error.code)
        self._outbox.put(Error.of(error, event_id))
        self._errors += 1
        if self._errors >= MOST_ERRORS:
            self.close(POLICY, "too many messages that are none")

    def _fail(self, text: str, code: int) -> None:
        self._outbox.put(Error(ErrorDetails("server_error", text)))
        self.close(code, text)

    async def _take_up(self, event: Resume) -> None:
        """Go on with the session that the client had before its connection broke."""
        found = self._lobby.resume(event.token, self)
        # Whoever has a session, or its place, passes it on, even where it ends in that moment.
        with anyio.CancelScope(shield=True):
            if found.evicted is not None:
                found.evicted.close(POLICY, "the session is on another connection now, or over")
                await found.evicted.over.wait()
            if isinstance(found, Grant):
                await self._move_to(found)
            elif found.ended is not None:
                await self._lobby.forget(found.ended)
        if isinstance(found, Loss):
            raise ProtocolError(GONE, "go on with the new session", code="resume_failed")

    async def _move_to(self, found: Grant[Dialogue, Connection]) -> None:
        self._session_scope.cancel()
        await self._conversed.wait()
        self.dialogue.detach()
        await self._lobby.forget(self.dialogue)
        self.kept = found.session
        self._outbox.binary = self.dialogue.settings.voiceloop.binary_audio
        self._outbox.put(SessionResumed())
        self._tasks.start_soon(self._converse, self._attached(anew=False))
        self._give(found.token)

    def _give(self, token: str) -> None:
        self.resumable = True
        self._outbox.put(SessionToken(token, self._limits.resume_s))
        self._tasks.start_soon(self._delivered)

    async def _delivered(self) -> None:
        """The pong to a ping behind the token says that the client has it."""
        with suppress(ConnectionClosed):
            await (await self._socket.ping())
            self._lobby.delivered(self)


def _too_much(refusal: Refusal) -> ProtocolError:
    wait = refusal.retry_after_s
    hint = "" if wait is None else f"try again in {wait:.1f} s"
    return ProtocolError(refusal.text, hint, code="rate_limit_exceeded")
