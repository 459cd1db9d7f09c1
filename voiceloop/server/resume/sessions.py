"""The rules of who has a session, kept in a store that several servers may share.

A session has one token at a time; the server sends it in a message, never in a URL. A client that
shows the token gets the session and a new token. Whoever had the session until then has lost it:
a client often knows earlier than its server that a connection is dead.

    begin ──► held ──── park ────► parked ──── after keep_s ────► over
                 ▲                   │
                 └────── take ───────┘

A token is bound to the API key under which the session began. Under another key it is unknown, and
the session stays as it is: a client that cannot take a session must not be able to end it either.

**The rule of the stolen token.** A token is spent once its successor has reached the client, which
the client reports. Until then the old token still works, because the connection may break again
before the new one arrives. If somebody shows a spent token, two parties have held it, and the
server cannot know which of them is the thief. So the session ends for both, and the client begins
a new one.

This module knows no sockets and no conversations. It keeps the state of a session as bytes, and
does not read them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from voiceloop.server.resume.store import Store, StoredValue, change

T = TypeVar("T")

ENDED = b""
"""Value of a session that has ended. It stays in the store, since others might still write to the
session."""
LEASE_S = 15.0
"""Seconds after which the store forgets the clients of a server that reports nothing more."""


class ResumeFailure(StrEnum):
    """The reasons why a session is not resumed, as logs and metrics name them."""

    UNKNOWN = "unknown_token"
    """The token is malformed, its session is gone, or the API key is another one."""
    REPLAYED = "replayed_token"
    """The token was spent. Showing it has ended the session."""
    NO_STORE = "no_store"
    """The store failed or did not answer, so nobody knows which client holds the session."""


class SessionRecord(msgspec.Struct, frozen=True):
    """The entry of one session in a store."""

    key: str | None
    """Id of the API key under which the session began; None without keys."""
    current: bytes
    """Proof of the newest token. It also identifies the client that holds the session, since each
    client that takes it gets a new token."""
    former: bytes = b""
    """Proof of the token before the newest; empty if there is none, or once the newest has
    arrived."""
    state: bytes = b""
    """The conversation, for another server; empty in a store that is not shared."""


class KeyRecord(msgspec.Struct, frozen=True):
    """The entry of one API key in a store."""

    places: dict[str, tuple[int, float]] = {}
    """For each server, by its name: the number of its clients with this key, and the time of the
    store's clock until which this number counts."""
    parked: dict[str, float] = {}
    """For each parked session, by its name, the oldest first: the time of the store's clock at
    which the session ends."""


@dataclass(slots=True, eq=False)
class Holding:
    """One client's hold on a session. It lasts until another client takes the session."""

    name: str
    """Name of the session in the store."""
    record: SessionRecord
    """The newest record. The store may not have its last changes yet."""
    stored: StoredValue | None = None
    """The value that the last write of this holder has stored; None before the first write."""
    parked: bool = False
    """Whether the session waits for its client."""

    def arrived(self) -> None:
        """Note that the client has received the newest token. The next write makes the former token
        invalid."""
        self.record = replace(self.record, former=b"")


class Taken(NamedTuple):
    """The result of showing a token that opens a session."""

    holding: Holding
    token: str
    """New token, which is sent to the client and kept nowhere else."""
    former: bytes
    """Proof of the token that was the newest until now. It identifies the former holder."""


class Refused(NamedTuple):
    """The result of showing a token that opens no session."""

    reason: ResumeFailure
    name: str = ""
    """Name of the session that the refused token has ended; empty if none."""


class Sessions:
    """The sessions that clients can resume, as all servers with the same store see them."""

    def __init__(
        self,
        store: Store,
        keep_s: float,
        per_key: int,
        *,
        random: Random = secrets.token_bytes,
    ) -> None:
        """Keep sessions parked for `keep_s` seconds, and at most `per_key` of each API key."""
        self._store = store
        self._keep_s = keep_s
        self._per_key = per_key
        self._random = random

    @property
    def shared(self) -> bool:
        """Whether other servers can resume the sessions."""
        return self._store.shared

    async def begin(self, key: str | None, state: bytes) -> tuple[Holding, str]:
        """Begin a session, and return the hold on it and its token."""
        token = new_token(random=self._random)
        holding = Holding(token.name, SessionRecord(key, token.proof, state=state))
        await self._write(holding)
        return holding, token.text

    async def take(self, text: str, key: str | None) -> Taken | Refused:
        """Give a session to a client that shows a token and `key`. If the token was spent, end the
        session."""
        shown = read_token(text)
        if shown is None:
            return Refused(ResumeFailure.UNKNOWN)
        fresh = new_token(shown.finder, self._random)
        while (before := await self._store.read(shown.name)) is not None:
            record = _decoded(before)
            if record is None or record.key != key:
                break
            if not _opens(record, shown):
                if await self._swap(shown.name, before, ENDED):
                    await self._unpark(record.key, shown.name)
                    return Refused(ResumeFailure.REPLAYED, shown.name)
                continue
            after = replace(record, current=fresh.proof, former=shown.proof)
            if stored := await self._swap(shown.name, before, msgspec.msgpack.encode(after)):
                await self._unpark(record.key, shown.name)
                return Taken(Holding(shown.name, after, stored), fresh.text, record.current)
        return Refused(ResumeFailure.UNKNOWN)

    async def save(self, holding: Holding, state: bytes) -> bool:
        """Keep the state of the conversation. Return False if the session is not this holder's any
        more."""
        holding.record = replace(holding.record, state=state)
        return await self._write(holding)

    async def renew(self, holding: Holding) -> bool:
        """Keep the session for longer. Return False if it is not this holder's any more."""
        if holding.stored and await self._store.touch(holding.name, holding.stored, self._held_s):
            return True
        return await self._write(holding)

    async def park(self, holding: Holding, state: bytes) -> list[str] | None:
        """Leave the session to whoever shows its token within `keep_s`.

        If the key has too many parked sessions, the oldest end. Return their names. Return None,
        and do nothing, if the session is not this holder's any more.
        """
        if not await self.save(holding, state):
            return None
        assert holding.stored is not None
        holding.parked = True
        await self._store.touch(holding.name, holding.stored, self._keep_s)
        key, until = holding.record.key, self._store.now() + self._keep_s
        over = await self._change_key(key, partial(self._parked, name=holding.name, until=until))
        for name in over:
            if before := await self._store.read(name):
                await self._swap(name, before, ENDED)
        return over

    async def end(self, holding: Holding) -> None:
        """End the session, unless somebody else has taken it."""
        if holding.parked:
            await self._unpark(holding.record.key, holding.name)
        if holding.stored is not None:
            await self._swap(holding.name, holding.stored, ENDED)

    async def admit(self, key: str | None, server: str, clients: int, most: float) -> bool:
        """Note that `server` has `clients` clients of `key`. Return False, and note nothing, if all
        servers together would have more than `most`."""

        def admitted(record: KeyRecord) -> tuple[KeyRecord, bool]:
            now = self._store.now()
            others = {
                name: place
                for name, place in record.places.items()
                if name != server and place[1] > now
            }
            if sum(number for number, _ in others.values()) + clients > most:
                return record, False
            own = {server: (clients, now + LEASE_S)} if clients else {}
            return replace(record, places=others | own), True

        return await self._change_key(key, admitted)

    @property
    def _held_s(self) -> float:
        """Seconds for which the store keeps a session that has a client. If the server dies, the
        client has this time to come back."""
        return self._keep_s + LEASE_S

    def _parked(self, record: KeyRecord, name: str, until: float) -> tuple[KeyRecord, list[str]]:
        now = self._store.now()
        waiting = {one: end for one, end in record.parked.items() if one != name and end > now}
        waiting[name] = until
        over = list(waiting)[: -self._per_key]
        kept = {one: end for one, end in waiting.items() if one not in over}
        return replace(record, parked=kept), over

    async def _unpark(self, key: str | None, name: str) -> None:
        def without(record: KeyRecord) -> tuple[KeyRecord, None]:
            kept = {one: end for one, end in record.parked.items() if one != name}
            return replace(record, parked=kept), None

        await self._change_key(key, without)

    async def _change_key(
        self, key: str | None, rule: Callable[[KeyRecord], tuple[KeyRecord, T]]
    ) -> T:
        def changed(value: bytes | None) -> tuple[bytes, T]:
            before = msgspec.msgpack.decode(value, type=KeyRecord) if value else KeyRecord()
            record, result = rule(before)
            return msgspec.msgpack.encode(record), result

        name = "key" if key is None else f"key:{key}"
        return await change(self._store, name, changed, self._held_s)

    async def _write(self, holding: Holding) -> bool:
        """Write the holder's record. Return False if somebody else has the session, or if it is
        over.

        If the store has lost the session, begin it again there.
        """
        value = msgspec.msgpack.encode(holding.record)
        while True:
            stored = await self._swap(holding.name, holding.stored, value)
            if stored is not None:
                holding.stored = stored
                return True
            # Either somebody else has written, or the answer to this holder's own write was lost.
            found = await self._store.read(holding.name)
            record = _decoded(found) if found else holding.record
            if record is None or record.current != holding.record.current:
                return False
            holding.stored = found

    async def _swap(
        self, name: str, before: StoredValue | None, value: bytes
    ) -> StoredValue | None:
        return await self._store.swap(name, before, value, self._held_s)


def _decoded(stored: StoredValue) -> SessionRecord | None:
    """Return the record of a session; None if the session has ended."""
    if stored.value == ENDED:
        return None
    return msgspec.msgpack.decode(stored.value, type=SessionRecord)


def _opens(record: SessionRecord, shown: Token) -> bool:
    """Return whether a token opens the session. Both proofs are always compared to their ends, so
    that the time reveals nothing."""
    proofs = (record.current, record.former)
    return any([hmac.compare_digest(shown.proof, proof) for proof in proofs])


Random = Callable[[int], bytes]
"""A function that returns a given number of bytes that nobody can guess."""

_HALF = 16
"""Bytes of each half of a token."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
"""Form of a token: both halves in URL-safe base64, without padding."""


class Token(NamedTuple):
    """A token. It is sent to a client, and kept nowhere."""

    finder: bytes
    """The half that all tokens of a session share."""
    secret: bytes
    """The half that proves the right to the session."""

    @property
    def name(self) -> str:
        """The name of the session in a store."""
        return f"session:{hashlib.sha256(self.finder).hexdigest()}"

    @property
    def proof(self) -> bytes:
        """The SHA-256 of the secret half, which a store keeps."""
        return hashlib.sha256(self.secret).digest()

    @property
    def text(self) -> str:
        """The text that a client gets."""
        return urlsafe_b64encode(self.finder + self.secret).rstrip(b"=").decode()


def new_token(finder: bytes | None = None, random: Random = secrets.token_bytes) -> Token:
    """Return a token of the session with this `finder`, or of a new session."""
    return Token(finder or random(_HALF), random(_HALF))


def read_token(text: str) -> Token | None:
    """Return the token that a client shows; None if `text` does not have the form of a token."""
    if not _TOKEN.fullmatch(text):
        return None
    both = urlsafe_b64decode(f"{text}=")
    return Token(both[:_HALF], both[_HALF:])
