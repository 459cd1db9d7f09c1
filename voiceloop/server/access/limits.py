"""Limits: how much one client may use, and how many clients may connect.

Rates are token buckets: they fill as time passes, and spending empties them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import anyio

from voiceloop.errors import ProtocolError
from voiceloop.settings.config import ServerConfig

if TYPE_CHECKING:  # the metrics have labels for what is limited
    from voiceloop.server.ops.metrics import Metrics

PATIENCE_S = 2.0
"""Maximum wait, in seconds, by which a client that exceeds a limit is slowed down. If it would have
to wait longer, it gets an error."""
SLACK = 1e-3
"""Missing amounts up to this size are ignored: rounding can leave them after a wait of exactly the
right length."""


class Kind(StrEnum):
    """The things that are limited, as logs and metrics name them."""

    AUDIO = "audio"
    """Seconds of audio from the client."""
    MESSAGES = "messages"
    """Messages from the client."""
    PREFILL = "prefill"
    """Tokens that the language model reads."""
    GENERATED = "generated"
    """Tokens that the language model writes."""
    IDLE = "idle"
    """Seconds without a message."""
    SESSION = "session"
    """Seconds since the session began."""
    SESSIONS = "sessions"
    """Places for clients."""
    SESSIONS_OF_KEY = "sessions_of_key"
    """Places for clients with the same key."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal because a limit was reached."""

    reason: Kind
    """The limit that was reached."""
    text: str
    """The reason in one sentence, for the client."""


class Bucket:
    """A token bucket: it holds up to `capacity`, starts full, and gains `rate` per second."""

    def __init__(self, capacity: float, rate: float, now: float) -> None:
        self._capacity, self._rate = capacity, rate
        self._level, self._at = capacity, now

    def level(self, now: float) -> float:
        """Return the level, which is negative if more was taken than was there."""
        # A clock that seems to go back adds nothing, and no time counts twice.
        elapsed = max(0.0, now - self._at)
        self._level = min(self._capacity, self._level + elapsed * self._rate)
        self._at += elapsed
        return self._level

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, even if the bucket holds less."""
        self._level = self.level(now) - amount

    def wait_s(self, amount: float, now: float) -> float:
        """Return the seconds until the bucket holds `amount`: 0 if it does now, infinity if it
        never can."""
        if amount > self._capacity:
            return math.inf
        lacking = amount - self.level(now)
        return lacking / self._rate if lacking > SLACK else 0.0


class RateLimiter:
    """A meter that enforces the limits of one client as time passes, and counts refusals."""

    def __init__(self, limits: ServerConfig, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self.turns = 0
        """Number of turns that have ended and had something to answer."""
        now = anyio.current_time()
        self._begun = self._active = now
        self._buckets = {
            Kind.AUDIO: Bucket(limits.audio_ahead_s, 1.0, now),
            Kind.MESSAGES: Bucket(limits.messages_burst, limits.messages_per_s, now),
            Kind.PREFILL: _per_minute(limits.prefill_tokens_per_min, now),
            Kind.GENERATED: _per_minute(limits.generated_tokens_per_min, now),
        }

    async def spend(self, kind: Kind, amount: float) -> None:
        """Spend `amount` of `kind`, after a wait if the limit requires one. Raises ProtocolError if
        the wait would be longer than `PATIENCE_S`, and spends nothing then.

        A message, even a refused one, shows that the client is not idle.
        """
        if kind is Kind.MESSAGES:
            self._active = anyio.current_time()
        bucket = self._buckets[kind]
        while wait := bucket.wait_s(amount, anyio.current_time()):
            if wait > PATIENCE_S:
                hint = "" if wait == math.inf else f"try again in {wait:.1f} s"
                raise ProtocolError(self._refused(kind), hint, code="rate_limit_exceeded")
            await anyio.sleep(wait)
        bucket.take(amount, anyio.current_time())

    async def hear(self, seconds: float, backlog_s: float) -> None:
        """Spend `seconds` of audio from the client; `backlog_s` seconds of earlier audio are not
        recognised yet.

        Raises ProtocolError if the client has sent too much audio, or if too much would wait to be
        recognised.
        """
        await self.spend(Kind.AUDIO, seconds)
        self._metrics.heard(seconds)
        if backlog_s + seconds > self._limits.audio_backlog_s:
            raise ProtocolError(
                f"more than {self._limits.audio_backlog_s:g} s of audio wait to be recognised",
                "send audio as it is recorded",
                code="rate_limit_exceeded",
            )

    def charge(self, kind: Kind, amount: float) -> str | None:
        """Subtract what has already been used. Return the reason of a refusal if that was too
        much: the text for the client."""
        now, bucket = anyio.current_time(), self._buckets[kind]
        bucket.take(amount, now)
        return self._refused(kind) if bucket.wait_s(0, now) else None

    async def over(self) -> str:
        """Wait until the client has been idle or connected for too long. Return which."""
        limits = self._limits
        while True:
            ends = {
                Kind.SESSION: self._begun + limits.session_s,
                Kind.IDLE: self._active + limits.idle_s,  # a message postpones that moment
            }
            first = min(ends, key=ends.__getitem__)
            if ends[first] <= anyio.current_time():
                return self._refused(first)
            await anyio.sleep_until(ends[first])

    def _refused(self, kind: Kind) -> str:
        """Count a refusal, and return its text."""
        self._metrics.refused(kind)
        return _TEXTS[kind].format(self._limits)


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """A place for one client, until it is released."""

    key: str | None
    """Id of the client's key; None if the server has no keys."""
    beside: bool = False
    """Whether the client is the server's own page, opened on this machine."""


class Admission:
    """The places for clients of one server. A client that has left holds no place, even
    while its session is kept for it."""

    def __init__(self, limits: ServerConfig) -> None:
        self._limits = limits
        self._tickets: set[Ticket] = set()

    def __len__(self) -> int:
        """Return the number of places that are taken."""
        return len(self._tickets)

    @property
    def full(self) -> bool:
        """Whether all places are taken."""
        return len(self) >= self._limits.max_sessions

    def admit(self, key: str | None, *, beside: bool = False) -> Ticket | Refusal:
        """Give a place to a client, or refuse it. `key` is the id of the key that it showed."""
        limits = self._limits
        if self.full:
            kind = Kind.SESSIONS
        elif self.of(key) >= limits.max_sessions_per_key:
            kind = Kind.SESSIONS_OF_KEY
        else:
            ticket = Ticket(key, beside)
            self._tickets.add(ticket)
            return ticket
        return self.refusal(kind)

    def of(self, key: str | None) -> int:
        """Return the number of places that clients of `key` have."""
        return sum(ticket.key == key for ticket in self._tickets)

    @property
    def keys(self) -> set[str | None]:
        """The keys of all clients that have a place."""
        return {ticket.key for ticket in self._tickets}

    def refusal(self, kind: Kind) -> Refusal:
        """Return the refusal of a client for which there is no place."""
        return Refusal(kind, _TEXTS[kind].format(self._limits))

    def release(self, ticket: Ticket) -> None:
        """Free the place of a client that has left. Raises KeyError if it is free already."""
        self._tickets.remove(ticket)


_TEXTS = {
    Kind.AUDIO: "more than {0.audio_ahead_s:g} s of audio ahead of real time",
    Kind.MESSAGES: "more than {0.messages_per_s} messages a second",
    Kind.PREFILL: "more than {0.prefill_tokens_per_min} tokens read in a minute",
    Kind.GENERATED: "more than {0.generated_tokens_per_min} tokens written in a minute",
    Kind.IDLE: "nothing was heard from the client for {0.idle_s:g} s",
    Kind.SESSION: "a session lasts {0.session_s:g} s at most",
    Kind.SESSIONS: "all {0.max_sessions} places are taken; one is free when somebody leaves",
    Kind.SESSIONS_OF_KEY: "this key has {0.max_sessions_per_key} clients, and may have no more",
}


def _per_minute(tokens: int, now: float) -> Bucket:
    return Bucket(tokens, tokens / 60, now)


AWAY = 1001
"""The server is ending."""
POLICY = 1008
"""A limit was reached, the client may not connect, or another connection has its session."""
INTERNAL = 1011
"""The server failed, or the client did not answer a ping."""
TRY_AGAIN = 1013
"""There is no place for the client now."""
