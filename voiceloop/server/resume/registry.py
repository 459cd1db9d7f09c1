"""The session registry: connected sessions, and parked ones whose client may come back.

Each client holds one of a limited number of places until it leaves. A parked session takes no
place; the number of parked sessions has limits of its own. A store, which several servers may
share, decides which client has which session. If the store gives a session to another client, this
module ends the session here.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import SystemRandom
from secrets import token_hex
from typing import NamedTuple, Protocol

import anyio
import msgspec

from voiceloop.assembly.loading import of_conversation
from voiceloop.conversations.names import checked
from voiceloop.engines import Engines
from voiceloop.server.access.limits import POLICY, Admission, Kind, Refusal, Ticket
from voiceloop.server.ops.metrics import Metrics
from voiceloop.server.resume.sessions import Holding, Refused, ResumeFailure, Sessions, Taken
from voiceloop.server.resume.store import Store, StoreError
from voiceloop.server.session.client_conversation import ClientConversation
from voiceloop.server.session.offers import OfferedConversations, Offers, OpenedConversation
from voiceloop.settings.config import Config
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.skills import begun, wall_time
from voiceloop.wire.items import maker
from voiceloop.wire.server_events import LlmServerUsed

logger = logging.getLogger(__name__)

BEAT_S = 2.0
"""Interval in seconds at which a server checks whether its sessions are still its own, and tells
other servers how many clients it has."""
PACE_S = 0.05
"""Minimum seconds between two writes of a session to the store: a client may change the session
many times a second."""
ELSEWHERE = "the session is on another connection now, or over"
"""Reason that a client gets when its connection is closed because it has lost its session."""


class Visitor(Protocol):
    """The connection of a client, as the registry knows it."""

    ticket: Ticket
    kept: KeptSession
    over: anyio.Event

    def close(self, code: int, reason: str) -> None:
        """End the connection from the server's side."""
        ...


@dataclass(eq=False)
class KeptSession:
    """One session of this server, connected or parked."""

    dialogue: ClientConversation
    connection: Visitor | None
    """The connection of its client; None while it is parked."""
    resumable: bool = False
    """Whether the client wants to resume it."""
    holding: Holding | None = None
    """The client's hold on the session in the store; None if the client has no token."""
    deadline: float = math.inf
    """Time of the loop's clock at which a parked session ends."""
    news: anyio.Event = field(default_factory=anyio.Event)
    """Set when there is more to write to the store."""

    def changed(self) -> None:
        """Have the session written to the store soon."""
        self.news.set()

    def arrived(self, connection: Visitor) -> None:
        """Note that the client of `connection` has received its newest token. Do nothing if another
        connection has the session."""
        if self.holding is not None and self.connection is connection:
            self.holding.arrived()
            self.news.set()


class Resumed(NamedTuple):
    """A session that a client has resumed."""

    kept: KeptSession
    token: str
    """New token, which is sent to the client and kept nowhere else."""


class SessionRegistry:
    """The registry in which sessions begin, are parked, and end.

    It has many attributes: what all sessions share, and tables of the sessions that can be
    continued.
    """

    def __init__(
        self,
        engines: Engines,
        config: Config,
        metrics: Metrics,
        turn_over: Callable[[], None],
        store: Store,
        offers: Offers | None = None,
        toolbox: Toolbox = NO_TOOLS,
        conversations: OfferedConversations | None = None,
    ) -> None:
        """`turn_over` is called when a turn of any session ends. Clients on this machine may choose
        among the language-model servers of `offers` and among the kept `conversations`; None means
        that nothing is offered. The replies of the server may call the tools in
        `toolbox`, besides those of the client."""
        self.new_id = maker(SystemRandom())
        self.turn_over = turn_over
        self.offers = offers
        self.conversations = conversations
        self.closing = False
        """Whether the server is ending, so that no session is parked in it any more."""
        self._engines = engines
        self._toolbox = toolbox
        self._config = config
        self._metrics = metrics
        self._admission = Admission(config.server)
        limits = config.server
        self._sessions = Sessions(store, limits.resume_s, limits.max_parked_per_key)
        self._kept: dict[str, KeptSession] = {}
        """Sessions that have a token, by their name in the store; parked ones are in the order in
        which they were parked."""
        self._open: dict[str, KeptSession] = {}
        """Sessions that go on with a kept conversation, by its name."""
        self._opening = anyio.Lock()
        self._name = token_hex(8)
        """Name of this server among those that share the store."""

    def __len__(self) -> int:
        """Return the number of sessions, connected and parked."""
        return len(self._admission) + len(self._parked)

    @property
    def full(self) -> bool:
        """Whether all places for clients are taken."""
        return self._admission.full

    # ---- places

    async def admit(self, key: str | None, *, beside: bool = False) -> Ticket | Refusal:
        """Give a place to a client until it leaves, or refuse the client. `key` is the id of its
        API key. `beside` is True if the client is the server's own page on the server's machine."""
        admitted = self._admission.admit(key, beside=beside)
        if isinstance(admitted, Ticket):
            room = True
            with anyio.CancelScope(shield=True):  # a cancellation here would leave the place taken
                room = await self._tell_places(key, self._config.server.max_sessions_per_key)
            if not room:
                self._admission.release(admitted)
                admitted = self._admission.refusal(Kind.SESSIONS_OF_KEY)
        if isinstance(admitted, Refusal):
            self._metrics.refused(admitted.reason)
        return admitted

    async def _tell_places(self, key: str | None, most: float = math.inf) -> bool:
        """Tell the other servers how many clients of `key` are here. Return False, and tell
        nothing, if all servers together would have more than `most` clients of `key`.

        If the store fails, return True: then each server limits only its own clients.
        """
        try:
            return await self._sessions.admit(key, self._name, self._admission.of(key), most)
        except StoreError as error:
            self._note_failure(error)
            return True

    # ---- a session's life

    def begin(self, connection: Visitor) -> KeptSession:
        """Begin a session for the client of a new connection."""
        kept = KeptSession(self._new_dialogue(), connection)
        self._count()
        return kept

    async def give_token(self, connection: Visitor) -> str:
        """Begin to keep the session of `connection` in the store, and return its first token.
        Raises StoreError."""
        kept = connection.kept
        key = connection.ticket.key
        kept.holding, token = await self._sessions.begin(key, self._state(kept))
        self._kept[kept.holding.name] = kept
        return token

    async def resume(self, token: str, connection: Visitor) -> Resumed | ResumeFailure:
        """Resume the session of `token`. Whoever has had it until now loses it.

        The caller shields this from cancellation.
        """
        try:
            found = await self._sessions.take(token, connection.ticket.key)
        except StoreError as error:
            self._note_failure(error)
            found = Refused(ResumeFailure.NO_STORE)
        if isinstance(found, Taken):
            found = await self._taken_up(found, connection)
        elif found.name in self._kept:
            await self._end(self._kept[found.name])
        if isinstance(found, Refused):
            self._metrics.refused(found.reason)
            self._count()
            return found.reason
        self._count()
        return found

    async def _taken_up(self, taken: Taken, connection: Visitor) -> Resumed | Refused:
        """Return the session that `connection` has taken. If the newest state of the session is on
        this server, continue it. Otherwise restore the session from the store."""
        here = self._kept.get(taken.holding.name)
        if here and here.holding and here.holding.record.current == taken.former:
            evicted, here.connection = here.connection, connection
            here.holding, here.deadline = taken.holding, math.inf
            if evicted is not None:
                evicted.close(POLICY, ELSEWHERE)
                await evicted.over.wait()
            return Resumed(here, taken.token)
        if here:
            await self._end(here, lasts=True)
        dialogue = self._new_dialogue()
        kept = KeptSession(dialogue, connection, True, taken.holding)
        try:
            dialogue.restore(taken.holding.record.state)
        except msgspec.DecodeError as error:
            logger.warning("a kept session cannot be read", extra={"why": str(error)})
            await self.forget(dialogue)
            return Refused(ResumeFailure.UNKNOWN)
        self._kept[taken.holding.name] = kept
        return Resumed(kept, taken.token)

    async def open(self, name: str, connection: Visitor) -> KeptSession:
        """Begin a session that goes on with the kept conversation `name`. If another session of
        this server has the conversation open, end that session first.

        The caller shields this from cancellation. Raises VoiceloopError.
        """
        assert self.conversations is not None, "whoever opens one was offered it"
        name = checked(name)
        async with self._opening:
            if here := self._open.get(name):
                if here.connection is not None:
                    await self._end(here)
                assert here.dialogue.opened is not None
                await here.dialogue.opened.over.wait()  # its client may have left just now
            opened = await self.conversations.open(name)
            try:
                kept = KeptSession(await self._dialogue_of(opened), connection)
            except BaseException:
                await opened.close()
                raise
            self._open[name] = kept
        self._count()
        return kept

    async def keep(self, connection: Visitor) -> None:
        """Write changes of the session of `connection` to the store, until cancelled. If another
        client has taken the session, close the connection and return."""
        kept, failed = connection.kept, False
        while True:
            with anyio.move_on_after(BEAT_S):
                await kept.news.wait()
            try:
                own = await self._write(kept)
            except StoreError as error:
                if not failed:
                    self._note_failure(error)
                failed = True
                await anyio.sleep(BEAT_S)
                continue
            failed = False
            if not own:
                connection.close(POLICY, ELSEWHERE)
                return
            await anyio.sleep(PACE_S)

    async def _write(self, kept: KeptSession) -> bool:
        """Write the session to the store if it has changed, and otherwise only renew its entry
        there. Return False if another client has taken the session."""
        assert kept.holding is not None
        holding, news = kept.holding, kept.news.is_set()
        kept.news = anyio.Event()
        try:
            if news:
                return await self._sessions.save(holding, self._state(kept))
            return await self._sessions.renew(holding)
        except BaseException:
            kept.news.set()  # what failed or was cancelled is written the next time
            raise

    async def leave(self, connection: Visitor) -> bool:
        """Free the place of a connection that has ended, and park or end its session. Return
        whether the client may come back."""
        self._admission.release(connection.ticket)
        await self._tell_places(connection.ticket.key)
        kept, parked = connection.kept, False
        if kept.connection is connection:
            kept.connection = None
            parks = bool(self._config.server.resume_s) and kept.holding is not None
            if parks and (self._sessions.shared or not self.closing):
                parked = await self._park(kept)
            if self.closing or not parked:
                await self._end(kept, lasts=parked)
        self._count()
        return parked

    async def _park(self, kept: KeptSession) -> bool:
        """Keep a session without a client for `server.resume_s` seconds, here and in the store.
        Return False if the session has ended, or if another client has taken it."""
        assert kept.holding is not None
        name = kept.holding.name
        kept.deadline = anyio.current_time() + self._config.server.resume_s
        if self._kept.pop(name, None) is None:
            return False
        self._kept[name] = kept  # to the end of the order
        await self._expire_late()
        try:
            over = await self._sessions.park(kept.holding, self._state(kept))
        except StoreError as error:
            self._note_failure(error)
            return True  # nevertheless the store may have received it
        if over is None:
            return False
        for other in over:
            if other in self._kept:
                await self._end(self._kept[other], lasts=True)
        for oldest in self._parked[: -self._config.server.max_sessions]:
            await self._end(oldest)
        return True

    async def _end(self, kept: KeptSession, *, lasts: bool = False) -> None:
        """End a session here, and in the store too unless it `lasts` there."""
        connection, kept.connection = kept.connection, None
        holding = kept.holding
        if holding is not None and self._kept.get(holding.name) is kept:
            del self._kept[holding.name]
        if connection is not None:
            connection.close(POLICY, ELSEWHERE)
            await connection.over.wait()
        if opened := kept.dialogue.opened:
            try:
                await opened.close()
            finally:
                del self._open[opened.name]
        if holding is not None and not lasts:
            try:
                await self._sessions.end(holding)
            except StoreError as error:
                self._note_failure(error)
        await self.forget(kept.dialogue)

    async def expire(self) -> None:
        """Run until cancelled: end parked sessions whose clients have not come back in time."""
        while True:
            await anyio.sleep(1.0)
            await self._expire_late()
            self._count()

    async def _expire_late(self) -> None:
        """End the sessions that have been parked for too long."""
        now = anyio.current_time()
        for late in [one for one in self._parked if now >= one.deadline]:
            await self._end(late, lasts=True)  # the store forgets late sessions itself

    async def tell_places(self) -> None:
        """Run until cancelled: tell the other servers that this one still has its clients."""
        while self._sessions.shared:
            await anyio.sleep(BEAT_S)
            for key in self._admission.keys:
                await self._tell_places(key)

    @property
    def _parked(self) -> list[KeptSession]:
        """The sessions that wait for their clients, the oldest first."""
        return [kept for kept in self._kept.values() if kept.connection is None]

    # ---- the models of a session

    def _new_dialogue(self) -> ClientConversation:
        engines = of_conversation(self._engines, self._config)
        now = wall_time(self._config.timezone)
        conversation = begun(engines.llm, self._config, now, self._toolbox)
        return ClientConversation(
            *(engines, self._config, conversation, self.new_id, now), toolbox=self._toolbox
        )

    async def _dialogue_of(self, opened: OpenedConversation) -> ClientConversation:
        """Return a dialogue that goes on with a kept conversation."""
        engines, config = of_conversation(self._engines, self._config), self._config
        now = wall_time(config.timezone)
        begin = partial(opened.kept.conversation, engines.llm, config, now, self._toolbox)
        conversation = await engines.llm_runner.call(begin)  # a long history takes a while
        return ClientConversation(
            *(engines, config, conversation, self.new_id, now, self._toolbox), opened
        )

    async def use(self, server: str, model: str) -> LlmServerUsed:
        """Let a model of the language-model server with the id `server` reply in all sessions that
        begin or are resumed from now on, as `Offers.take` describes. Raises ConfigError if it is
        not offered. Raises the errors of loading it."""
        assert self.offers is not None, "whoever knows of a server was offered it"
        llm, self._config, used = await self.offers.take(server, model)
        self._engines = replace(self._engines, llm=llm)
        return used

    async def renew(self, dialogue: ClientConversation) -> None:
        """Give a resumed session the language model that new sessions get."""
        if dialogue.engines.llm is not self._engines.llm:
            await self._engines.llm_runner.call(dialogue.close)
            dialogue.think_with(self._engines.llm, self._config)

    async def forget(self, dialogue: ClientConversation) -> None:
        """Free the language model's caches of a session that has ended. The caller makes sure that
        nothing of the session runs any more."""
        await self._engines.llm_runner.call(dialogue.close)

    def _state(self, kept: KeptSession) -> bytes:
        """Return the snapshot from which other servers can restore a session; empty if no other
        server shares the store."""
        return kept.dialogue.snapshot() if self._sessions.shared else b""

    # ---- figures

    def _note_failure(self, error: StoreError) -> None:
        logger.warning("the store of sessions fails", extra={"why": error.message})
        self._metrics.store_failed()

    def _count(self) -> None:
        """Write the numbers of sessions to the metrics."""
        self._metrics.sessions(connected=len(self._admission), parked=len(self._parked))
