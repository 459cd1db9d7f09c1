"""One client's connection: a task that reads, a task that writes, and a session between them.

The connection enforces the client's limits, answers faulty messages with an error, and says which
session the client has. Its `ClientSession` knows what events mean, and its `Transport` carries
messages. The connection ends when its transport ends, when a limit is reached, or when the client
returns on another connection.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.lowlevel
from msgspec import UNSET

from voiceloop.errors import Code, ProtocolError, VoiceloopError
from voiceloop.server.access.limits import INTERNAL, POLICY, Kind, RateLimiter, Ticket
from voiceloop.server.ops.logs import VISIT
from voiceloop.server.ops.metrics import Metrics
from voiceloop.server.resume.registry import KeptSession, Resumed, SessionRegistry
from voiceloop.server.resume.sessions import ResumeFailure
from voiceloop.server.resume.store import StoreError
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.client_session import ClientSession, Host
from voiceloop.server.session.offers import OfferedConversations
from voiceloop.server.session.outbox import Outbox
from voiceloop.settings.config import ServerConfig
from voiceloop.settings.schema import tag_of
from voiceloop.trace.otel import Report
from voiceloop.types import TurnTrace
from voiceloop.wire import client_events, server_events
from voiceloop.wire.items import RATE
from voiceloop.wire.parsing import parse, parse_binary
from voiceloop.wire.server_events import Error, ErrorDetails
from voiceloop.wire.settings import length

logger = logging.getLogger(__name__)

GOODBYE_S = 1.0
"""Seconds that a client has to read the last messages. After them it has as many seconds again to
confirm the close."""
MOST_ERRORS = 100
"""Refused messages in a row after which the connection is closed."""
GONE = "this session cannot be resumed; begin a new one"
"""Text for a client that may not resume a session. It is the same for every reason, so it does not
reveal whether the session exists."""
UNKEPT = "this session cannot be resumed if the connection breaks: the store of sessions fails"
TRY_LATER = "go on with this session, and try again later"


class Disconnected(Exception):
    """Raised by a transport that carries no more messages."""


class Transport(Protocol):
    """A carrier of text and binary messages to and from one client."""

    async def receive(self) -> str | bytes:
        """Return the client's next message. Raises Disconnected if none will come."""
        ...

    async def send(self, message: str | bytes) -> None:
        """Send `message`, and wait while the client does not read.

        If the wait is cancelled, the message is not sent. Raises Disconnected if nothing can be
        sent.
        """
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close the transport in agreement with the client, if it is still there."""
        ...


class Connection(Host):
    """One connection of a client. Call `run` once; it returns when the connection has ended.

    It has many attributes: the state that outlives a client session and ends with the connection.
    """

    def __init__(
        self,
        transport: Transport,
        registry: SessionRegistry,
        ticket: Ticket,
        limits: ServerConfig,
        metrics: Metrics,
        *,
        transcribes: bool = False,
        report: Report | None = None,
        record: Path | None = None,
    ) -> None:
        """Begin a session for the client, whose place is `ticket`. `transcribes` makes it a session
        of type `transcription`. `report` is called with each turn that has ended. With `record`,
        the session is recorded in that folder."""
        self.ticket = ticket
        """The client's place, with the id of the API key that it showed."""
        self.over = anyio.Event()
        """Set once nothing of the session runs on this connection any more."""
        self.kept = registry.begin(self)
        """The session, as the registry keeps it."""
        if transcribes:
            self.dialogue.transcribe()
        self._registry = registry
        self._limits = limits
        self._metrics = metrics
        self._transport = transport
        self._limiter = RateLimiter(limits, metrics)
        self._outbox = Outbox(registry.new_id, metrics)
        self._report = report
        self._record = record
        self.client_session = self._begin()
        """The client session that runs on this connection."""
        self._scope = anyio.CancelScope()
        self._closing: tuple[int, str] = (1000, "")
        self._silent = True
        """Whether the client has not sent any event yet."""
        self._move: Callable[[], Awaitable[None]] | None = None
        """What gives the client another session, before its next message is read; None if nothing
        does."""

    @property
    def dialogue(self) -> ClientConversation:
        """The dialogue of the session."""
        return self.kept.dialogue

    @property
    def turns(self) -> int:
        """Number of turns that have ended and had something to answer."""
        return self._limiter.turns

    @property
    def why(self) -> str:
        """Why the server ended the connection; empty if it has not."""
        return self._closing[1]

    def close(self, code: int, reason: str) -> None:
        """End the connection from the server's side."""
        self._closing = (code, reason)
        self._scope.cancel()

    def charge(self, kind: Kind, tokens: float) -> None:
        """Count tokens that the session has used. End the connection if they are too many."""
        if refusal := self._limiter.charge(kind, tokens):
            self._fail(refusal, POLICY)

    async def run(self) -> None:
        """Serve the client until either side ends the connection."""
        gone = False
        try:
            with self._scope:
                async with anyio.create_task_group() as self._tasks:
                    self._tasks.start_soon(self._write)
                    self._tasks.start_soon(self._watch)
                    self.client_session.welcome()
                    self._tasks.start_soon(self._converse, self.client_session)
                    self._tasks.start_soon(self._offer)
                    try:
                        await self._read()
                    except Disconnected:
                        gone = True
                    self._tasks.cancel_scope.cancel()
        finally:
            self.over.set()
        if not gone:
            await self._say_goodbye(*self._closing)

    # ---- sending

    async def _write(self) -> None:
        """Send messages. End the connection if the client reads too slowly."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send)
            await self._outbox.overrun.wait()
            self.close(POLICY, "the client reads too slowly")

    async def _send(self) -> None:
        try:
            await self._outbox.run(self._transport.send)
        except Disconnected:
            # The reading task notices it too, once it has read what came before.
            self._outbox.discard()

    async def _watch(self) -> None:
        """End the connection when the client was idle or connected for too long."""
        self.close(POLICY, await self._limiter.over())

    async def _say_goodbye(self, code: int, reason: str) -> None:
        """Send the last messages, such as the reason of the end, and close the transport."""
        self._outbox.end()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ignore)
            with anyio.move_on_after(GOODBYE_S):
                await self._send()
            with anyio.move_on_after(GOODBYE_S):
                await self._transport.close(code, reason)
            tasks.cancel_scope.cancel()

    async def _ignore(self) -> None:
        # Otherwise the client's close would wait behind its other messages.
        with suppress(Disconnected):
            while True:
                await self._transport.receive()

    # ---- receiving

    async def _read(self) -> None:
        """Handle the client's messages, one after the other."""
        refused = 0
        while True:
            message = await self._transport.receive()
            # Let other clients run between two messages of this one.
            await anyio.lowlevel.checkpoint()
            await self._outbox.room()
            refused = 0 if await self._obey(message) else refused + 1
            self._silent = False
            if refused >= MOST_ERRORS:
                self.close(POLICY, "too many messages that are none")

    async def _obey(self, message: str | bytes) -> bool:
        """Handle one message within the limits. Return False if it was answered with an error."""
        event_id = None
        try:
            await self._limiter.spend(Kind.MESSAGES, 1)
            event = self._parsed(message)
            event_id = event.event_id
            if isinstance(event, client_events.InputAudioAppend):
                seconds = length(event.audio, self.dialogue.settings.audio.input.format) / RATE
                await self._limiter.hear(seconds, self.client_session.microphone.backlog_s)
            self.client_session.handle(event)
            if self._move is not None:
                move, self._move = self._move, None
                await move()
        except ProtocolError as error:
            self._outbox.refuse(error, event_id)
            return False
        return True

    def _parsed(self, message: str | bytes) -> client_events.ClientEvent:
        """Parse a message. For each invalid setting in it, send an error."""
        if isinstance(message, bytes):
            return parse_binary(message)
        return parse(message, lambda error: self._outbox.refuse(error, error.event_id))

    def _fail(self, text: str, code: int) -> None:
        """Send the client an error that is not its fault, and end the connection."""
        self._outbox.put(Error(ErrorDetails("server_error", text)))
        self.close(code, text)

    # ---- what clients on this machine may choose

    async def _offer(self) -> None:
        """Offer the client what it may choose from: the kept conversations, and language-model
        servers of this machine."""
        if not self.ticket.beside:
            return
        conversations, offers = self._registry.conversations, self._registry.offers
        names = UNSET if conversations is None else await conversations.names()
        self.client_session.offer((), names)
        self.client_session.offer(() if offers is None else await offers.look(), names)

    def use(self, event: client_events.UseLlmServer) -> None:
        """Begin to use another language-model server, if the client may choose one."""
        if not self.ticket.beside or self._registry.offers is None:
            raise ProtocolError(
                "nobody but a page of this server that was opened on its machine chooses who "
                "replies, and only where that is offered",
                "start the server with --llm-server",
                code="not_permitted",
                param="type",
            )
        self._tasks.start_soon(self._begin_use, event)

    async def _begin_use(self, event: client_events.UseLlmServer) -> None:
        """Have the chosen language-model server loaded while the conversation goes on. Tell the
        client whether that succeeded."""
        try:
            self._outbox.put(await self._registry.use(event.server, event.model))
        except VoiceloopError as error:
            refusal = ProtocolError(error.message, error.hint, param="server")
            self._outbox.refuse(refusal, event.event_id)

    def open(self, event: client_events.OpenConversation) -> None:
        """Go on with a kept conversation in place of the session with which this connection began,
        if the client may choose one."""
        self._check_first(event, "unsupported_event")
        if not self.ticket.beside or self._registry.conversations is None:
            raise ProtocolError(
                "nobody but a page of this server that was opened on its machine opens kept "
                "conversations, and only where that is offered",
                "start the server with --conversations",
                code="not_permitted",
                param="type",
            )
        self.dialogue.check_responds()
        self._move = partial(self._open, event.name, self._registry.conversations)

    async def _open(self, name: str, conversations: OfferedConversations) -> None:
        with anyio.CancelScope(shield=True):
            try:
                kept = await self._registry.open(name, self)
            except VoiceloopError as error:
                raise ProtocolError(error.message, error.hint, param="name") from error
            await self._replace(kept)
        logger.info("a kept conversation goes on", extra={"items": len(self.dialogue.ledger.items)})
        self._go_on()
        self.client_session.welcome()
        for text in conversations.news():
            self._outbox.put(Error(ErrorDetails("server_error", text)))

    # ---- the session

    def _begin(self) -> ClientSession:
        """Begin a client session with the dialogue."""
        return ClientSession(
            self.dialogue, self._outbox, self, report=self._report, record=self._record
        )

    def _go_on(self) -> None:
        """Begin a client session in place of the one that was stopped."""
        self.client_session = self._begin()
        self._tasks.start_soon(self._offer)
        self._tasks.start_soon(self._converse, self.client_session)

    async def _converse(self, client_session: ClientSession) -> None:
        try:
            await client_session.run()
        except Exception:
            logger.exception("a session broke")
            self._fail("the session broke; connect again", INTERNAL)

    def ended(self, trace: TurnTrace) -> None:
        """Count a turn that has ended, and charge its tokens."""
        self._limiter.turns += trace.outcome != "abandoned"
        self._metrics.observe(trace)
        self.spent(trace.counters.get("tokens", 0), trace.counters.get("tokens_read", 0))
        self.kept.changed()
        self._registry.turn_over()

    def spent(self, written: float, read: float) -> None:
        """Charge the tokens that the language model has written and read."""
        self.charge(Kind.GENERATED, written)
        self.charge(Kind.PREFILL, read)

    def changed(self, event: client_events.ClientEvent) -> None:
        """Have the session written to the store soon, since the client has changed it by `event`.
        Begin to keep the session if the client asks for that."""
        extensions = self.dialogue.settings.voiceloop
        self._outbox.binary = extensions.binary_audio
        # Only an update asks: if the store fails, further items cause no further errors.
        asks = isinstance(event, client_events.SessionUpdate) and extensions.resume
        # A kept conversation is opened again instead.
        if asks and not self.kept.resumable and self.dialogue.kept is None:
            self.kept.resumable = True
            self._tasks.start_soon(self._keep)
        self.kept.changed()

    def confirm_token(self, event: client_events.TokenReceived) -> None:
        """Note that the client has received its newest token."""
        self.kept.arrived(self)

    def resume(self, event: client_events.Resume) -> None:
        """Resume the session that the client had before its connection broke."""
        self._check_first(event, "resume_failed")
        self._move = partial(self._take_up, event.token)

    def _check_first(self, event: client_events.ClientEvent, code: Code) -> None:
        """Raise ProtocolError if the client has sent another event before."""
        if not self._silent:
            raise ProtocolError(
                f"{tag_of(type(event))} comes first, before anything else",
                "send it as the first message of a connection",
                code=code,
            )

    async def _take_up(self, token: str) -> None:
        found: Resumed | ResumeFailure = ResumeFailure.UNKNOWN
        # Shielded: a session must be handed over whole, even if this connection ends meanwhile.
        with anyio.CancelScope(shield=True):
            found = await self._registry.resume(token, self)
            if isinstance(found, Resumed):
                await self._move_to(found)
        if isinstance(found, ResumeFailure):
            hint = TRY_LATER if found is ResumeFailure.NO_STORE else "go on with the new session"
            raise ProtocolError(GONE, hint, code="resume_failed")

    async def _replace(self, kept: KeptSession) -> None:
        """End the session with which this connection began, and use the session `kept` instead."""
        await self.client_session.stop()
        await self._registry.forget(self.dialogue)
        self.kept = kept
        await self._registry.renew(self.dialogue)

    async def _move_to(self, found: Resumed) -> None:
        """Continue the session that was found."""
        await self._replace(found.kept)
        logger.info("a conversation goes on", extra={"of": self.dialogue.visit})
        self.dialogue.visit = VISIT.get()
        self._outbox.binary = self.dialogue.settings.voiceloop.binary_audio
        self._outbox.put(server_events.SessionResumed())
        self._go_on()
        self.client_session.welcome_back()
        self._give_token(found.token)
        self._tasks.start_soon(self._registry.keep, self)

    async def _keep(self) -> None:
        """Send the client a token with which it can resume the session, and keep the session."""
        try:
            token = await self._registry.give_token(self)
        except StoreError as error:
            logger.warning("a session cannot be kept", extra={"why": error.message})
            self.kept.resumable = False
            refusal = ProtocolError(UNKEPT, TRY_LATER, code="resume_failed")
            self._outbox.refuse(refusal, None)
            return
        self._give_token(token)
        await self._registry.keep(self)

    def _give_token(self, token: str) -> None:
        self._outbox.put(server_events.SessionToken(token, self._limits.resume_s))
