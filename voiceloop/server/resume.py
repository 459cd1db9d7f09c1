"""Sessions whose client may come back after its connection broke, and the tokens that prove it.

A session has one token at a time; the server sends it in a message, never in a URL. Whoever shows
it gets the session and a new token. A socket that seems to have the session still is to be closed:
a client often knows earlier than its server that a connection is dead.

    begin ──► connected ──── park ────► parked ──── after keep_s ────► over
                 ▲   ▲ resume elsewhere  │
                 │   └───────────────────│── while still connected
                 └──────── resume ───────┘

A token is 128 random bits that find the session and 128 that prove the right to it; of both only
the SHA-256 is kept, so a dump of memory opens nothing. It is bound to the API key under which the
session began. Under another key it is unknown, and the session stays as it is: who cannot take it
shall not be able to end it either.

**The rule of the stolen token.** A token is spent once its successor has reached the client, which
`delivered` says (the answer to a ping that was sent after it). Until then it still works, because
the connection may break again before the successor is through. Whoever shows a token that finds
a session and is spent is one of two who have held it, and which of them is the thief cannot be
known. So the session ends for both, and the client begins a new one.

This module knows no sockets and no clock: both are whatever the caller gives.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

P = TypeVar("P")
"""What a session holds."""
S = TypeVar("S")
"""What a client is connected by."""

GONE = "this session cannot be resumed; begin a new one"
"""All that a client learns of a `Loss`."""

_HALF = 16
"""Bytes of each half of a token."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
"""Both halves, as base64 without its padding."""


class ResumeFailure(StrEnum):
    """Why a session cannot be resumed; the words of logs and metrics."""

    UNKNOWN = "unknown_token"
    """The token is none, or of no session that is still there, or under another key."""
    REPLAYED = "replayed_token"
    """The token was spent; this has ended the session."""


@dataclass(slots=True, eq=False)
class ResumableSession(Generic[P, S]):
    """One session, as `Sessions` keeps it. Only the payload is for others."""

    key: str | None
    payload: P
    finder: bytes
    """First half of its tokens, as a hash."""
    socket: S | None = None
    """None while the session is parked."""
    deadline: float = math.inf
    """Until when it is parked, if it is."""
    current: bytes = b""
    """Second half of the newest token, as a hash."""
    former: bytes = b""
    """Likewise of the one before, while it is not known that the newest has arrived."""


@dataclass(frozen=True, slots=True)
class Grant(Generic[P, S]):
    """The session is the client's."""

    session: ResumableSession[P, S]
    token: str
    """To be sent to the client, and to be kept nowhere else."""
    evicted: S | None = None
    """The socket that had the session until now, to be closed."""


@dataclass(frozen=True, slots=True)
class Loss(Generic[P, S]):
    """The session is not the client's."""

    reason: ResumeFailure
    ended: P | None = None
    """What the session held that this has ended."""
    evicted: S | None = None
    """The socket that it was connected by, to be closed."""


class Sessions(Generic[P, S]):
    """All sessions of the server, connected and parked."""

    def __init__(
        self,
        keep_s: float,
        per_key: int,
        most: int,
        *,
        random: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """Sessions stay parked for `keep_s` seconds, `per_key` of them for each API key, and `most`
        in all.

        `random` gives so many bytes that nobody can guess.
        """
        self._keep_s = keep_s
        self._per_key = per_key
        self._most = most
        self._random = random
        self._found: dict[bytes, ResumableSession[P, S]] = {}
        """By their finders; those that are parked in the order in which they were."""

    @property
    def connected(self) -> int:
        """How many sessions have a client."""
        return len(self._found) - self.parked

    @property
    def parked(self) -> int:
        """How many wait for theirs."""
        return len(self._waiting())

    def begin(self, key: str | None, payload: P, socket: S) -> Grant[P, S]:
        """A new session of the client that showed `key` and is connected by `socket`."""
        finder = self._random(_HALF)
        session = ResumableSession[P, S](key, payload, _digest(finder))
        self._found[session.finder] = session
        return self._grant(session, socket, finder)

    def resume(
        self, token: str, key: str | None, socket: S, now: float
    ) -> Grant[P, S] | Loss[P, S]:
        """Connect by `socket` the client that shows `token`, and `key`, to its session."""
        if not _TOKEN.fullmatch(token):
            return Loss(ResumeFailure.UNKNOWN)
        both = urlsafe_b64decode(f"{token}=")
        finder, proof = both[:_HALF], _digest(both[_HALF:])
        session = self._found.get(_digest(finder))
        if session is None or session.key != key or now >= session.deadline:
            return Loss(ResumeFailure.UNKNOWN)
        valid = [hmac.compare_digest(proof, one) for one in (session.current, session.former)]
        if any(valid):
            return self._grant(session, socket, finder, proof)
        evicted = None if session.socket is socket else session.socket
        return Loss(ResumeFailure.REPLAYED, self._drop(session), evicted)

    def delivered(self, session: ResumableSession[P, S], socket: S) -> None:
        """The client has the token that was sent by `socket`: the one before it is spent."""
        if session.socket is socket:
            session.former = b""

    def park(self, session: ResumableSession[P, S], socket: S, now: float) -> list[P]:
        """The connection by `socket` broke; gives what the sessions held that are over for it.

        That is the session itself where nothing is parked, or the oldest where its key has too
        many, or all keys together. Nothing happens where the session is connected by another
        socket already, or over.
        """
        if not self._has(session, socket):
            return []
        session.socket, session.deadline = None, now + self._keep_s
        self._found[session.finder] = self._found.pop(session.finder)  # the last of all
        over = self.expire(now)
        of_key = [one for one in self._waiting() if one.key == session.key]
        over += [self._drop(oldest) for oldest in of_key[: -self._per_key]]
        return over + [self._drop(oldest) for oldest in self._waiting()[: -self._most]]

    def end(self, session: ResumableSession[P, S], socket: S) -> bool:
        """The session is over; False where it is connected by another socket, or was over before.

        Who is told True gives back what the session held.
        """
        had = self._has(session, socket)
        if had:
            self._drop(session)
        return had

    def expire(self, now: float) -> list[P]:
        """End the sessions that have waited for long enough; gives what they held."""
        late = [session for session in self._found.values() if now >= session.deadline]
        return [self._drop(session) for session in late]

    def _waiting(self) -> list[ResumableSession[P, S]]:
        """Those that are parked, the oldest first."""
        return [session for session in self._found.values() if session.socket is None]

    def _grant(
        self, session: ResumableSession[P, S], socket: S, finder: bytes, shown: bytes = b""
    ) -> Grant[P, S]:
        """Connect the session by `socket`, with a new token beside the one that was `shown`."""
        evicted = None if session.socket is socket else session.socket
        session.socket, session.deadline = socket, math.inf
        proof = self._random(_HALF)
        session.former, session.current = shown, _digest(proof)
        token = urlsafe_b64encode(finder + proof).rstrip(b"=").decode()
        return Grant(session, token, evicted)

    def _has(self, session: ResumableSession[P, S], socket: S) -> bool:
        return self._found.get(session.finder) is session and session.socket is socket

    def _drop(self, session: ResumableSession[P, S]) -> P:
        return self._found.pop(session.finder).payload


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
