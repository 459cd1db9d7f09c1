"""Limits: how much one client may use, and how many clients may connect.

Rates are token buckets: they fill as time passes, and spending empties them. This module knows no
clock and no sockets: callers give the time. It stops nothing; it refuses, and says when to retry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from voiceloop.settings.config import ServerConfig

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
    retry_after_s: float | None
    """Seconds after which to try again; None if waiting does not help."""


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

    def wait_s(self, amount: float, now: float) -> float | None:
        """Return the seconds until the bucket holds `amount`: 0 if it does now, None if it never
        can."""
        if amount > self._capacity:
            return None
        lacking = amount - self.level(now)
        return lacking / self._rate if lacking > SLACK else 0.0


class Budget:
    """The amounts that one session may still spend."""

    def __init__(self, limits: ServerConfig, now: float) -> None:
        self._limits = limits
        self._begun = self._active = now
        self._buckets = {
            Kind.AUDIO: Bucket(limits.audio_ahead_s, 1.0, now),
            Kind.MESSAGES: Bucket(limits.messages_burst, limits.messages_per_s, now),
            Kind.PREFILL: _per_minute(limits.prefill_tokens_per_min, now),
            Kind.GENERATED: _per_minute(limits.generated_tokens_per_min, now),
        }

    def spend(self, kind: Kind, amount: float, now: float) -> Refusal | None:
        """Take `amount` of `kind`, or take nothing and return a refusal.

        A message, even a refused one, shows that the client is not idle. If the refusal says when
        to try again, the caller may either wait, which slows the client down, or send it an error.
        """
        _check(amount)
        if kind is Kind.MESSAGES:
            self._active = max(self._active, now)
        wait = self._buckets[kind].wait_s(amount, now)
        if wait == 0:
            self._buckets[kind].take(amount, now)
            return None
        return Refusal(kind, _TEXTS[kind].format(self._limits), wait)

    def charge(self, kind: Kind, amount: float, now: float) -> Refusal | None:
        """Take `amount` of `kind`, which was used already. Return a refusal if that was too much.

        After a refusal nothing of this kind can be spent until the bucket is no longer overdrawn.
        """
        _check(amount)
        self._buckets[kind].take(amount, now)
        wait = self._buckets[kind].wait_s(0, now)
        return Refusal(kind, _TEXTS[kind].format(self._limits), wait) if wait else None

    def over(self, now: float) -> Refusal | None:
        """Return why the session must end at the time `now`; None if it may continue."""
        if now - self._begun >= self._limits.session_s:
            return Refusal(Kind.SESSION, _TEXTS[Kind.SESSION].format(self._limits), None)
        if now - self._active >= self._limits.idle_s:
            return Refusal(Kind.IDLE, _TEXTS[Kind.IDLE].format(self._limits), None)
        return None

    def ends_at(self) -> float:
        """Return the time at which the session must end, unless another message comes."""
        return min(self._begun + self._limits.session_s, self._active + self._limits.idle_s)


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
        return Refusal(kind, _TEXTS[kind].format(self._limits), None)

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


def _check(amount: float) -> None:
    if not 0 <= amount < math.inf:
        raise ValueError(f"{amount} cannot be spent")


AWAY = 1001
"""The server is ending."""
POLICY = 1008
"""A limit was reached, the client may not connect, or another connection has its session."""
INTERNAL = 1011
"""The server failed, or the client did not answer a ping."""
TRY_AGAIN = 1013
"""There is no place for the client now."""
