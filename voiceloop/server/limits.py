"""How much one client may take, and how many may be there: counted, with the time given by others.

A rate is a bucket that fills as time passes and is emptied by what is spent. This module knows no
clock and no sockets, and it stops nothing: it says no, and when to ask again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from voiceloop.config import ServerConfig

SLACK = 1e-3
"""Less than this counts as nothing: rounding leaves it after a wait of just the right length."""


class Kind(StrEnum):
    """What a session spends."""

    AUDIO = "audio"
    """Seconds of audio that came from the client."""
    MESSAGES = "messages"
    """Messages of the client."""
    PREFILL = "prefill"
    """Tokens read."""
    GENERATED = "generated"
    """Tokens written."""
    IDLE = "idle"
    """Time without a message."""
    SESSION = "session"
    """Time since the session began."""
    SESSIONS = "sessions"
    """Places for clients."""
    SESSIONS_OF_KEY = "sessions_of_key"
    """Places for the clients of one key."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """No, or not yet."""

    reason: Kind
    """What there is not enough of; the word of logs and metrics."""
    text: str
    """The same in one sentence, for the client."""
    retry_after_s: float | None
    """After how long to ask again, in seconds; none where time alone does not help."""


class Bucket:
    """Holds up to `capacity`, starts full, and fills by `rate` a second (a token bucket)."""

    def __init__(self, capacity: float, rate: float, now: float) -> None:
        self._capacity, self._rate = capacity, rate
        self._level, self._at = capacity, now

    def level(self, now: float) -> float:
        """What is in it; less than nothing where more was taken than there was."""
        # A clock that seems to go back fills nothing, and its hours are not counted twice.
        elapsed = max(0.0, now - self._at)
        self._level = min(self._capacity, self._level + elapsed * self._rate)
        self._at += elapsed
        return self._level

    def take(self, amount: float, now: float) -> None:
        """Take `amount`, whether it is there or not."""
        self._level = self.level(now) - amount

    def wait_s(self, amount: float, now: float) -> float | None:
        """Seconds until `amount` is there, 0 where it is; none where it does not fit at all."""
        if amount > self._capacity:
            return None
        lacking = amount - self.level(now)
        return lacking / self._rate if lacking > SLACK else 0.0


class Budget:
    """What one session may still spend."""

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
        """Take `amount` of `kind`, or nothing of it and say why not.

        A message counts as a sign of life. A refusal that says when to try again leaves a choice:
        to wait, and so to let the client wait, or to tell it.
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
        """Take what has been spent already, and say where that was too much: then stop.

        What is owed is paid before anything else may be spent.
        """
        _check(amount)
        self._buckets[kind].take(amount, now)
        wait = self._buckets[kind].wait_s(0, now)
        return Refusal(kind, _TEXTS[kind].format(self._limits), wait) if wait else None

    def over(self, now: float) -> Refusal | None:
        """Why the session is at its end by `now`, if it is."""
        if now - self._begun >= self._limits.session_s:
            return Refusal(Kind.SESSION, _TEXTS[Kind.SESSION].format(self._limits), None)
        if now - self._active >= self._limits.idle_s:
            return Refusal(Kind.IDLE, _TEXTS[Kind.IDLE].format(self._limits), None)
        return None

    def ends_at(self) -> float:
        """When the session will be at its end unless another message comes."""
        return min(self._begun + self._limits.session_s, self._active + self._limits.idle_s)


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """A place for one client, until it is given back."""

    key: str | None
    """Id of the client's key; none where clients need none."""
    beside: bool = False
    """The client is the server's own page, opened on this machine."""


class Admission:
    """Counts the clients of the server. Whoever has gone has no place, even where its session
    waits for it."""

    def __init__(self, limits: ServerConfig) -> None:
        self._limits = limits
        self._tickets: set[Ticket] = set()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._tickets)

    @property
    def full(self) -> bool:
        """All places are taken."""
        return len(self) >= self._limits.max_sessions

    def admit(self, key: str | None, *, beside: bool = False) -> Ticket | Refusal:
        """A place for the client that showed `key`."""
        limits = self._limits
        if self.full:
            kind = Kind.SESSIONS
        elif sum(ticket.key == key for ticket in self._tickets) >= limits.max_sessions_per_key:
            kind = Kind.SESSIONS_OF_KEY
        else:
            ticket = Ticket(key, beside)
            self._tickets.add(ticket)
            return ticket
        return Refusal(kind, _TEXTS[kind].format(limits), None)

    def release(self, ticket: Ticket) -> None:
        """The client has gone; KeyError where it had before."""
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
