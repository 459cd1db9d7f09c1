"""The store that servers of several machines share: Redis, or a server with its protocol."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from secrets import randbits
from typing import Any, TypeVar

from voiceloop.errors import ConfigError
from voiceloop.server.resume.store import ANSWER_S, StoredValue, StoreError

T = TypeVar("T")

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


def redis_store(address: str) -> RedisStore:
    """Return the store at an address such as `redis://HOST:6379/0`. Raises ConfigError."""
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
        client = Redis.from_url(
            address,
            socket_timeout=try_s,
            socket_connect_timeout=try_s,
            retry=Retry(NoBackoff(), 1),
        )
        return RedisStore(client, RedisError)
    except ValueError as error:  # its text may have a password, so it is not shown
        hint = "write redis://HOST:PORT, or rediss:// for TLS"
        raise ConfigError("server.store is no address of Redis", hint) from error
