"""The choice of a store of sessions by the setting `server.store`, and the store in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from secrets import randbits
from typing import TypeVar

import anyio
import anyio.to_thread

from voiceloop.conversations.files import connect
from voiceloop.errors import ConfigError
from voiceloop.server.resume.store import ANSWER_S, MemoryStore, Store, StoredValue, StoreError


def open_store(address: str) -> Store:
    """Return the store that the setting `server.store` names: memory if it is empty, an SQLite
    file, Redis, or an actor of a Ray cluster.

    Raises ConfigError for an address with an unknown scheme, and for a store that cannot be used.
    """
    if not address:
        return MemoryStore()
    scheme, separator, _ = address.partition("://")
    if not separator:
        return SqliteStore(address)
    if scheme in ("redis", "rediss", "unix"):
        from voiceloop.server.resume.redis import redis_store

        return redis_store(address)
    if scheme == "ray":
        from voiceloop.server.resume.ray import RayStore

        return RayStore(address.partition("://")[2])
    raise ConfigError(
        f"server.store cannot be `{scheme}://…`", "give a file, or redis://HOST:PORT, or nothing"
    )


T = TypeVar("T")

_TABLE = """
CREATE TABLE IF NOT EXISTS kept (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL, ends REAL NOT NULL
) WITHOUT ROWID
"""
_READ = "SELECT version, value FROM kept WHERE name = ? AND ends > ?"
_INSERT = "INSERT INTO kept VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING"
_UPDATE = (
    "UPDATE kept SET version = ?, value = ?, ends = ? WHERE name = ? AND version = ? AND ends > ?"
)
_TOUCH = "UPDATE kept SET ends = ? WHERE name = ? AND version = ? AND ends > ?"
_EXPIRE = "DELETE FROM kept WHERE ends <= ?"


class SqliteStore:
    """A store in a file."""

    shared = True

    def __init__(self, path: str) -> None:
        """Open the file, or make it. Raises ConfigError if that fails."""
        self._path = Path(path).expanduser().absolute()
        self._one = anyio.CapacityLimiter(1)
        try:
            self._database, self._file = self._opened()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"server.store cannot be {self._path}: {error}",
                "name a file in a folder that the server may write to",
            ) from error

    def now(self) -> float:
        """Return the unix time in seconds."""
        return datetime.now(UTC).timestamp()

    async def read(self, name: str) -> StoredValue | None:
        """Return the value of `name`; None if there is none."""
        return await self._run(lambda: self._read(name))

    async def swap(
        self, name: str, before: StoredValue | None, value: bytes, keep_s: float
    ) -> StoredValue | None:
        """Write `value` for `keep_s` seconds if the stored value is still `before`. Return the new
        stored value, or None if nothing was written."""
        return await self._run(lambda: self._swap(name, before, value, keep_s))

    async def touch(self, name: str, stored: StoredValue, keep_s: float) -> bool:
        """Keep `stored` for `keep_s` seconds from now on. Return False if it was replaced."""
        now = self.now()
        given = (now + keep_s, name, stored.version, now)
        return await self._run(lambda: self._database.execute(_TOUCH, given).rowcount == 1)

    async def close(self) -> None:
        """Close the file."""
        await anyio.to_thread.run_sync(self._database.close)

    def _read(self, name: str) -> StoredValue | None:
        with closing(self._database.execute(_READ, (name, self.now()))) as rows:
            row = rows.fetchone()
        return StoredValue(*row) if row else None

    def _swap(
        self, name: str, before: StoredValue | None, value: bytes, keep_s: float
    ) -> StoredValue | None:
        now, after = self.now(), StoredValue(randbits(62), value)
        if before is None:
            self._database.execute(_EXPIRE, (now,))
            given = (name, after.version, value, now + keep_s)
            done = self._database.execute(_INSERT, given)
        else:
            given = (after.version, value, now + keep_s, name, before.version, now)
            done = self._database.execute(_UPDATE, given)
        return after if done.rowcount == 1 else None

    async def _run(self, work: Callable[[], T]) -> T:
        """Run `work` on a worker thread when no other work runs, and return its result. Raises
        StoreError if it fails, or is not done within `ANSWER_S` seconds."""
        try:
            with anyio.move_on_after(ANSWER_S):
                return await anyio.to_thread.run_sync(
                    self._on_the_file, work, abandon_on_cancel=True, limiter=self._one
                )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self._path}: {error}") from error
        raise StoreError(f"{self._path} did not answer in {ANSWER_S:g} s")

    def _on_the_file(self, work: Callable[[], T]) -> T:
        """Do `work` on the file at the store's path. Open that file first if somebody has removed
        or replaced the one that is open."""
        if not self._path.exists() or self._path.stat().st_ino != self._file:
            self._database.close()
            self._database, self._file = self._opened()
        return work()

    def _opened(self) -> tuple[sqlite3.Connection, int]:
        """Return a connection to the file, and the inode of the file."""
        database = connect(self._path, ANSWER_S / 2)
        database.execute(_TABLE)
        return database, self._path.stat().st_ino
