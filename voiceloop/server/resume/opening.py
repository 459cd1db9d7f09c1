"""The choice of a store of sessions by the setting `server.store`."""

from __future__ import annotations

from voiceloop.errors import ConfigError
from voiceloop.server.resume.store import MemoryStore, Store


def open_store(address: str) -> Store:
    """Return the store that the setting `server.store` names: memory if it is empty, an SQLite
    file, Redis, or an actor of a Ray cluster.

    Raises ConfigError for an address with an unknown scheme, and for a store that cannot be used.
    """
    if not address:
        return MemoryStore()
    scheme, separator, _ = address.partition("://")
    if not separator:
        from voiceloop.server.resume.sqlite import SqliteStore

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
