"""Sessions that a client can resume after its connection broke, and the tokens for that.

A session has one token at a time; the server sends it in a message, never in a URL. A client that
shows the token gets the session and a new token. If the session still has another socket, the
caller closes that one: a client often knows earlier than its server that a connection is dead.

    begin ──► connected ──── park ────► parked ──── after keep_s ────► over
                 ▲                       │
                 └──────── resume ───────┘

A token has 128 random bits that find the session and 128 that prove the right to it. Only the
SHA-256 of each half is kept, so a dump of memory reveals no token. A token is bound to the API key
under which the session began. Under another key it is unknown, and the session stays as it is: a
client that cannot take a session must not be able to end it either.

**The rule of the stolen token.** A token is spent once its successor has reached the client. The
caller reports that with `delivered` (the client has answered a ping that was sent after it). Until
then the old token still works, because the connection may break again before the new one arrives.
If somebody shows a spent token, two parties have held it, and the server cannot know which of them
is the thief. So the session ends for both, and the client begins a new one.

This module uses no sockets and no clock: a socket is only a mark of a connection here, and the
caller gives the time.
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
"""Type of the payload that a session holds."""
S = TypeVar("S")
"""Type of the object that stands for a client's connection, here called its socket."""

GONE = "this session cannot be resumed; begin a new one"
"""The only text about a `Loss` that a client gets."""

_HALF = 16
"""Bytes of each half of a token."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
"""Form of a token: both halves in URL-safe base64, without padding."""


class ResumeFailure(StrEnum):
    """The reasons why a session is not resumed, as logs and metrics name them."""

    UNKNOWN = "unknown_token"
    """The token is malformed, its session is gone, or the API key is another one."""
    REPLAYED = "replayed_token"
    """The token was spent. Showing it has ended the session."""


@dataclass(slots=True, eq=False)
class ResumableSession(Generic[P, S]):
    """One session, as `Sessions` keeps it. Other modules use only payload and socket."""

    key: str | None
    payload: P
    finder: bytes
    """Hash of the first half of its tokens, which all its tokens share."""
    socket: S | None = None
    """The socket of its client; None while the session is parked."""
    deadline: float = math.inf
    """Time at which a parked session ends; infinite while it is connected."""
    current: bytes = b""
    """Hash of the second half of the newest token."""
    former: bytes = b""
    """Hash of the second half of the token before the newest; empty if there is none, or once the
    newest is known to have arrived."""


@dataclass(frozen=True, slots=True)
class Grant(Generic[P, S]):
    """The result of a request that gives the client a session."""

    session: ResumableSession[P, S]
    token: str
    """New token, which is sent to the client and kept nowhere else."""
    evicted: S | None = None
    """Other socket that had the session until now, if any; the caller closes it."""


@dataclass(frozen=True, slots=True)
class Loss(Generic[P, S]):
    """The result of a request that gives the client no session."""

    reason: ResumeFailure
    ended: P | None = None
    """Payload of the session that this request has ended, if any."""
    evicted: S | None = None
    """Other socket that had the ended session, if any; the caller closes it."""


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
        """Keep sessions parked for `keep_s` seconds: at most `per_key` for each API key, and `most`
        in all.

        `random(n)` returns `n` bytes that nobody can guess.
        """
        self._keep_s = keep_s
        self._per_key = per_key
        self._most = most
        self._random = random
        self._found: dict[bytes, ResumableSession[P, S]] = {}
        """Sessions by `finder`; among them the parked ones are in the order of their parking."""

    @property
    def connected(self) -> int:
        """Number of sessions that have a client."""
        return len(self._found) - self.parked

    @property
    def parked(self) -> int:
        """Number of sessions that wait for their client."""
        return len(self._waiting())

    def begin(self, key: str | None, payload: P, socket: S) -> Grant[P, S]:
        """Begin a session for the client that showed `key` and is connected by `socket`."""
        finder = self._random(_HALF)
        session = ResumableSession[P, S](key, payload, _digest(finder))
        self._found[session.finder] = session
        return self._grant(session, socket, finder)

    def resume(
        self, token: str, key: str | None, socket: S, now: float
    ) -> Grant[P, S] | Loss[P, S]:
        """Give the session of `token` to the client that shows `key` and is connected by `socket`.
        If the token was spent, end the session."""
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
        """Note that the token sent by `socket` has arrived. The one before it is now spent."""
        if session.socket is socket:
            session.former = b""

    def park(self, session: ResumableSession[P, S], socket: S, now: float) -> list[P]:
        """Park a session whose connection by `socket` broke. Return the payloads of sessions that
        this ends.

        It ends sessions that are parked for too long. If then the key or all keys together have too
        many parked sessions, it ends the oldest of these. Do nothing if the session has ended or
        has another socket already.
        """
        if not self._has(session, socket):
            return []
        session.socket, session.deadline = None, now + self._keep_s
        self._found[session.finder] = self._found.pop(session.finder)  # to the end of the order
        over = self.expire(now)
        of_key = [one for one in self._waiting() if one.key == session.key]
        over += [self._drop(oldest) for oldest in of_key[: -self._per_key]]
        return over + [self._drop(oldest) for oldest in self._waiting()[: -self._most]]

    def end(self, session: ResumableSession[P, S], socket: S) -> bool:
        """End the session and return True; then the caller frees the payload. Do nothing and return
        False if the session has another socket or has ended before."""
        had = self._has(session, socket)
        if had:
            self._drop(session)
        return had

    def expire(self, now: float) -> list[P]:
        """End the sessions that have been parked for too long. Return their payloads."""
        late = [session for session in self._found.values() if now >= session.deadline]
        return [self._drop(session) for session in late]

    def _waiting(self) -> list[ResumableSession[P, S]]:
        """Return the parked sessions, the oldest first."""
        return [session for session in self._found.values() if session.socket is None]

    def _grant(
        self, session: ResumableSession[P, S], socket: S, finder: bytes, shown: bytes = b""
    ) -> Grant[P, S]:
        """Connect the session by `socket` and make a new token. `shown` is the hash of the second
        half of the token that was shown, which stays valid until the new one arrives."""
        evicted = None if session.socket is socket else session.socket
        session.socket, session.deadline = socket, math.inf
        proof = self._random(_HALF)
        session.former, session.current = shown, _digest(proof)
        token = urlsafe_b64encode(finder + proof).rstrip(b"=").decode()
        return Grant(session, token, evicted)

    def _has(self, session: ResumableSession[P, S], socket: S) -> bool:
        """Return whether the session has not ended, and is connected by `socket`."""
        return self._found.get(session.finder) is session and session.socket is socket

    def _drop(self, session: ResumableSession[P, S]) -> P:
        """End a session. Return its payload."""
        return self._found.pop(session.finder).payload


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
