"""The stores of sessions: in the memory of a server, or in Redis for several servers.

A store keeps small values by name, each for a time. Its one way to write is `swap`, which writes
only if nobody else has written since the value was read. All rules of resuming rely on that, so
they hold between servers too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import count
from random import random
from secrets import randbits
from typing import Any, NamedTuple, Protocol, TypeVar

import anyio

from voiceloop.errors import ConfigError, VoiceloopError

ANSWER_S = 2.0
"""Seconds that a store has to answer."""
SWEEP_S = 1.0
"""Seconds after which the store in memory drops values that are over."""
TRIES = 20
"""Number of times that a change is tried while others write the same value."""

BACKOFF_S = 0.002
"""Maximum wait before the next try of a change, in seconds per try so far."""

T = TypeVar("T")


class StoreError(VoiceloopError):
    """A store that fails, is full, or does not answer."""


class StoredValue(NamedTuple):
    """A value in a store."""

    version: int
    """Number that no other value of the same name has had."""
    value: bytes


class Store(Protocol):
    """A keeper of values by name. Every method may raise StoreError."""

    shared: bool
    """Whether other servers see the values. If they do, the values also outlast this process."""

    def now(self) -> float:
        """Return the time in seconds, by a clock that all users of the store share."""
        ...

    async def read(self, name: str) -> StoredValue | None:
        """Return the value of `name`; None if there is none, or its time is over."""
        ...

    async def swap(
        self, name: str, before: StoredValue | None, value: bytes, keep_s: float
    ) -> StoredValue | None:
        """Write `value` for `keep_s` seconds if the stored value is still `before`. None as
        `before` means that nothing is stored.

        Return the new stored value. Return None if nothing was written.
        """
        ...

    async def touch(self, name: str, stored: StoredValue, keep_s: float) -> bool:
        """Keep `stored` for `keep_s` seconds from now on. Return False if it was replaced."""
        ...

    async def close(self) -> None:
        """Release the connections, files and threads of the store."""
        ...


async def change(
    store: Store, name: str, rule: Callable[[bytes | None], tuple[bytes, T]], keep_s: float
) -> T:
    """Replace the value of `name` by what `rule` makes of it, and return the rule's result.

    `rule` is called again if somebody else has written meanwhile. Raises StoreError if that happens
    `TRIES` times.
    """
    for tries in range(TRIES):
        before = await store.read(name)
        value, result = rule(before.value if before else None)
        if await store.swap(name, before, value, keep_s) is not None:
            return result
        # The others try again too, so each of them waits for a random time.
        await anyio.sleep(random() * BACKOFF_S * (tries + 1))
    raise StoreError("the store of sessions is too busy")


class MemoryStore:
    """A store in the memory of this server."""

    shared = False

    def __init__(self) -> None:
        self._values: dict[str, tuple[StoredValue, float]] = {}
        """Values by name, each with the time at which it ends."""
        self._swept = 0.0
        """When the values that are over were dropped last."""
        self._versions = count(1)

    def now(self) -> float:
        """Return the time of the event loop's clock."""
        return anyio.current_time()

    async def read(self, name: str) -> StoredValue | None:
        """Return the value of `name`; None if there is none."""
        now = self.now()
        if now > self._swept + SWEEP_S:
            self._swept = now
            self._values = {one: kept for one, kept in self._values.items() if kept[1] > now}
        stored, ends = self._values.get(name, (None, 0.0))
        return stored if ends > now else None

    async def swap(
        self, name: str, before: StoredValue | None, value: bytes, keep_s: float
    ) -> StoredValue | None:
        """Write `value` for `keep_s` seconds if the stored value is still `before`. Return the new
        stored value, or None if nothing was written."""
        if await self.read(name) != before:
            return None
        after = StoredValue(next(self._versions), value)
        self._values[name] = after, self.now() + keep_s
        return after

    async def touch(self, name: str, stored: StoredValue, keep_s: float) -> bool:
        """Keep `stored` for `keep_s` seconds from now on. Return False if it was replaced."""
        if await self.read(name) != stored:
            return False
        self._values[name] = stored, self.now() + keep_s
        return True

    async def close(self) -> None:
        """Do nothing: the values go with the process."""


PREFIX = "voiceloop:"
"""Beginning of the names of all keys."""

_SWAP = """
if (redis.call('HGET', KEYS[1], 'version') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'value', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
"""
_TOUCH = """
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""


class RedisStore:
    """A store in Redis. Each script runs there as one step, which nothing interrupts."""

    shared = True

    def __init__(self, client: Any, failures: type[Exception]) -> None:
        """`client` is a `redis.asyncio.Redis`, and `failures` the base class of its errors."""
        self._client = client
        self._failures = failures
        self._swap = client.register_script(_SWAP)
        self._touch = client.register_script(_TOUCH)

    def now(self) -> float:
        """Return the unix time in seconds. Clocks of servers may differ by a second or so."""
        return datetime.now(UTC).timestamp()

    async def read(self, name: str) -> StoredValue | None:
        """Return the value of `name`; None if there is none."""
        version, value = await self._ask(self._client.hmget(PREFIX + name, "version", "value"))
        return None if version is None else StoredValue(int(version), value)

    async def swap(
        self, name: str, before: StoredValue | None, value: bytes, keep_s: float
    ) -> StoredValue | None:
        """Write `value` for `keep_s` seconds if the stored value is still `before`. Return the new
        stored value, or None if nothing was written."""
        after = StoredValue(randbits(62), value)
        given = [before.version if before else "", after.version, value, round(keep_s * 1000)]
        done = await self._ask(self._swap(keys=[PREFIX + name], args=given))
        return after if done else None

    async def touch(self, name: str, stored: StoredValue, keep_s: float) -> bool:
        """Keep `stored` for `keep_s` seconds from now on. Return False if it was replaced."""
        given = [stored.version, round(keep_s * 1000)]
        return bool(await self._ask(self._touch(keys=[PREFIX + name], args=given)))

    async def close(self) -> None:
        """Close the connections."""
        await self._ask(self._client.aclose())

    async def _ask(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except (self._failures, OSError) as error:
            raise StoreError(f"Redis: {error}") from error


def open_store(address: str) -> Store:
    """Return the store that the setting `server.store` names: memory if it is empty, or the Redis
    at an address such as `redis://HOST:6379/0`. Raises ConfigError."""
    if not address:
        return MemoryStore()
    if not address.startswith(("redis://", "rediss://", "unix://")):
        raise ConfigError(
            "server.store cannot be a file or an actor of Ray, only Redis",
            "give redis://HOST:PORT, or nothing: then only this server can resume its sessions",
        )
    try:
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError
    except ImportError as error:
        hint = "pip install 'voiceloop[redis]'"
        raise ConfigError("server.store at Redis needs the package redis", hint) from error
    try:
        try_s = ANSWER_S / 2  # two tries fit, since Redis may just have been restarted
        client = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            address,
            socket_timeout=try_s,
            socket_connect_timeout=try_s,
            retry=Retry(NoBackoff(), 1),
        )
        return RedisStore(client, RedisError)
    except ValueError as error:  # its text may have a password, so it is not shown
        hint = "write redis://HOST:PORT, or rediss:// for TLS"
        raise ConfigError("server.store is no address of Redis", hint) from error
