"""What a store of sessions is, and the store in memory.

A store keeps small values by name, each for a time. Its one way to write is `swap`, which writes
only if nobody else has written since the value was read. All rules of resuming rely on that, so
they hold between servers too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import random
from typing import NamedTuple, Protocol, TypeVar

import anyio

from voiceloop.errors import VoiceloopError

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
