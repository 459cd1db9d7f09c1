"""The store that the replicas of a Ray cluster share: an actor with the sessions in its memory.

If the actor dies, Ray starts it again, and each server writes its own sessions again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio
import ray
from ray.exceptions import RayError

from voiceloop.server.resume.store import ANSWER_S, MemoryStore, StoredValue, StoreError

NAMESPACE = "voiceloop"
"""Namespace of the actor among those of the cluster."""


class Keeper(MemoryStore):
    """The store as an actor, which serves one request after the other."""


class RayStore:
    """A store in an actor of the cluster."""

    shared = True

    def __init__(self, name: str) -> None:
        """Find the actor of that name, or start it."""
        actor = ray.remote(num_cpus=0, max_restarts=-1)(Keeper)
        self._actor: Any = actor.options(
            name=name, namespace=NAMESPACE, lifetime="detached", get_if_exists=True
        ).remote()

    def now(self) -> float:
        """Return the unix time in seconds. Clocks of machines may differ by a second or so."""
        return datetime.now(UTC).timestamp()

    async def read(self, name: str) -> StoredValue | None:
        """Return the value of `name`; None if there is none."""
        return await self._ask("read", name)

    async def swap(
        self, name: str, before: StoredValue | None, value: bytes, keep_s: float
    ) -> StoredValue | None:
        """Write `value` for `keep_s` seconds if the stored value is still `before`. Return the new
        stored value, or None if nothing was written."""
        return await self._ask("swap", name, before, value, keep_s)

    async def touch(self, name: str, stored: StoredValue, keep_s: float) -> bool:
        """Keep `stored` for `keep_s` seconds from now on. Return False if it was replaced."""
        return await self._ask("touch", name, stored, keep_s)

    async def close(self) -> None:
        """Do nothing: the actor outlasts its servers."""

    async def _ask(self, method: str, *given: object) -> Any:
        try:
            with anyio.move_on_after(ANSWER_S):
                return await getattr(self._actor, method).remote(*given)
        except RayError as error:
            raise StoreError(f"Ray: {error}") from error
        raise StoreError(f"Ray did not answer in {ANSWER_S:g} s")
