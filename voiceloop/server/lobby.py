"""The session registry: connected sessions, and parked ones whose client may come back.

Each client holds one of a limited number of places until it leaves. A parked session takes no
place; the number of parked sessions has limits of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import SystemRandom
from typing import TYPE_CHECKING

import anyio

from voiceloop.config import Config
from voiceloop.engines import Engines
from voiceloop.loading import load_vad
from voiceloop.server.dialogue import Dialogue
from voiceloop.server.limits import Admission, Refusal, Ticket
from voiceloop.server.metrics import Metrics
from voiceloop.server.offers import Offers
from voiceloop.server.resume import Grant, Loss, Sessions
from voiceloop.turn.skills import begun, wall_time
from voiceloop.wire.extensions import LlmServerUsed
from voiceloop.wire.ids import maker

if TYPE_CHECKING:
    from voiceloop.server.connection import Connection


class SessionRegistry:
    """The registry in which sessions begin, are parked, and end."""

    def __init__(
        self,
        engines: Engines,
        config: Config,
        metrics: Metrics,
        turn_over: Callable[[], None],
        offers: Offers | None = None,
    ) -> None:
        """`turn_over` is called when a turn of any session ends. `offers` are the language-model
        servers offered to clients on this machine; None if there are no offers."""
        self.new_id = maker(SystemRandom())
        self.turn_over = turn_over
        self.offers = offers
        self.closing = False
        """Whether the server is ending, so that no session is parked any more."""
        self._engines = engines
        self._config = config
        self._metrics = metrics
        self._admission = Admission(config.server)
        self._sessions: Sessions[Dialogue, Connection] = Sessions(
            config.server.resume_s, config.server.max_parked_per_key, config.server.max_sessions
        )

    def __len__(self) -> int:
        """Return the number of sessions, connected and parked."""
        return self._sessions.connected + self._sessions.parked

    @property
    def full(self) -> bool:
        """Whether all places for clients are taken."""
        return self._admission.full

    def admit(self, key: str | None, *, beside: bool = False) -> Ticket | Refusal:
        """Give a place to a client until it leaves, or refuse it. `key` is the id of its API key;
        `beside` means that it is the server's own page, opened on this machine."""
        admitted = self._admission.admit(key, beside=beside)
        if isinstance(admitted, Refusal):
            self._metrics.refused(admitted.reason)
        return admitted

    def begin(self, connection: Connection) -> Grant[Dialogue, Connection]:
        """Begin a session for the client of a new connection."""
        engines = replace(self._engines, vad=load_vad(self._config))
        now = wall_time(self._config.timezone)
        conversation = begun(engines.llm, self._config, now)
        dialogue = Dialogue(engines, self._config, conversation, self.new_id, now)
        grant = self._sessions.begin(connection.ticket.key, dialogue, connection)
        self._count()
        return grant

    def resume(
        self, token: str, connection: Connection
    ) -> Grant[Dialogue, Connection] | Loss[Dialogue, Connection]:
        """Resume the session of `token`. If that succeeds, end the session with which the
        connection began."""
        found = self._sessions.resume(
            token, connection.ticket.key, connection, anyio.current_time()
        )
        if isinstance(found, Loss):
            self._metrics.refused(found.reason)
        else:
            self._sessions.end(connection.grant.session, connection)
        self._count()
        return found

    async def use(self, server: str) -> LlmServerUsed:
        """Let the language-model server with the id `server` reply in all sessions that begin or
        are resumed from now on. Raises ConfigError if it is not offered, and what loading its model
        raises."""
        assert self.offers is not None, "whoever knows of a server was offered it"
        llm, self._config, used = await self.offers.take(server)
        self._engines = replace(self._engines, llm=llm)
        return used

    async def renew(self, dialogue: Dialogue) -> None:
        """Give a resumed session the language model that new sessions get."""
        if dialogue.engines.llm is not self._engines.llm:
            await self._engines.llm_runner.call(dialogue.close)
            dialogue.think_with(self._engines.llm, self._config)

    def delivered(self, connection: Connection) -> None:
        """Note that the newest token has reached the client."""
        self._sessions.delivered(connection.grant.session, connection)

    async def forget(self, dialogue: Dialogue) -> None:
        """Free the language model's caches of a session that has ended. The caller makes sure that
        nothing of the session runs any more."""
        await self._engines.llm_runner.call(dialogue.close)

    async def leave(self, connection: Connection) -> bool:
        """Free the place of a connection that has ended, and park or end its session. Return
        whether the session is parked."""
        self._admission.release(connection.ticket)
        over: list[Dialogue] = []
        if connection.resumable and self._config.server.resume_s and not self.closing:
            over = self._sessions.park(connection.grant.session, connection, anyio.current_time())
        elif self._sessions.end(connection.grant.session, connection):
            over = [connection.dialogue]
        for dialogue in over:
            await self.forget(dialogue)
        self._count()
        return connection.grant.session.socket is None

    async def expire(self) -> None:
        """Run until cancelled: end parked sessions whose clients have not come back in time."""
        while True:
            await anyio.sleep(1.0)
            for dialogue in self._sessions.expire(anyio.current_time()):
                await self.forget(dialogue)
            self._count()

    def _count(self) -> None:
        """Write the numbers of sessions to the metrics."""
        self._metrics.sessions(connected=self._sessions.connected, parked=self._sessions.parked)
