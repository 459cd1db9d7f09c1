"""The meter of one client: it enforces the client's limits as time passes, and counts refusals."""

from __future__ import annotations

import anyio

from voiceloop.errors import ProtocolError
from voiceloop.server.access.limits import Budget, Kind, Refusal
from voiceloop.server.ops.metrics import Metrics
from voiceloop.settings.config import ServerConfig

PATIENCE_S = 2.0
"""Maximum wait, in seconds, by which a client that exceeds a limit is slowed down. If it would have
to wait longer, it gets an error."""


class RateLimiter:
    """A meter that enforces the limits of one client and counts refusals."""

    def __init__(self, limits: ServerConfig, metrics: Metrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self.turns = 0
        """Number of turns that have ended and had something to answer."""
        self._budget = Budget(limits, anyio.current_time())

    async def spend(self, kind: Kind, amount: float) -> None:
        """Spend `amount` of `kind`, after a wait if the limit requires one. Raises ProtocolError if
        the wait would be longer than `PATIENCE_S`."""
        while refusal := self._budget.spend(kind, amount, anyio.current_time()):
            if refusal.retry_after_s is None or refusal.retry_after_s > PATIENCE_S:
                self.metrics.refused(refusal.reason)
                raise _too_much(refusal)
            await anyio.sleep(refusal.retry_after_s)

    async def hear(self, seconds: float, backlog_s: float) -> None:
        """Spend `seconds` of audio from the client; `backlog_s` seconds of earlier audio are not
        recognised yet.

        Raises ProtocolError if the client has sent too much audio, or if too much would wait to be
        recognised.
        """
        await self.spend(Kind.AUDIO, seconds)
        self.metrics.heard(seconds)
        if backlog_s + seconds > self.limits.audio_backlog_s:
            raise ProtocolError(
                f"more than {self.limits.audio_backlog_s:g} s of audio wait to be recognised",
                "send audio as it is recorded",
                code="rate_limit_exceeded",
            )

    def charge(self, kind: Kind, amount: float) -> Refusal | None:
        """Subtract what has already been used. Return a refusal if that was too much."""
        if refusal := self._budget.charge(kind, amount, anyio.current_time()):
            self.metrics.refused(refusal.reason)
        return refusal

    async def over(self) -> Refusal:
        """Wait until the client has been idle or connected for too long. Return the refusal."""
        while (refusal := self._budget.over(anyio.current_time())) is None:  # noqa: ASYNC110
            await anyio.sleep_until(self._budget.ends_at())  # a message postpones that moment
        self.metrics.refused(refusal.reason)
        return refusal


def _too_much(refusal: Refusal) -> ProtocolError:
    wait = refusal.retry_after_s
    hint = "" if wait is None else f"try again in {wait:.1f} s"
    return ProtocolError(refusal.text, hint, code="rate_limit_exceeded")
