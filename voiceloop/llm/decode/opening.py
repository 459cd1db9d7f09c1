"""Shares the rows of an opening among conversations: the ids before the first exchange, which are
the system prompt and the tools.

Most conversations of an engine have the same opening, and it is far longer than what a user says.
"""

from __future__ import annotations

from collections.abc import Sequence

from voiceloop.errors import OutOfMemory
from voiceloop.llm.model.cache import MEMORY_HINT, KvCache
from voiceloop.placement import memory_for


class SharedOpening:
    """Keeps a copy of the rows of the newest opening.

    Only whole openings are compared. If parts were, a client could find out the instructions of
    another client word by word, from the time that its own take.
    """

    def __init__(self) -> None:
        self._ids: tuple[int, ...] = ()
        self._rows = KvCache(0)

    def lend(self, ids: Sequence[int], cache: KvCache) -> bool:
        """Replace the rows of `cache` by those of the opening `ids`, and return whether they were
        kept."""
        kept = bool(ids) and tuple(ids) == self._ids
        if kept:
            cache.fork(self._rows, len(ids))
        return kept

    def keep(self, ids: Sequence[int], cache: KvCache) -> None:
        """Keep the rows of the opening `ids`, which are all rows of `cache`, if the memory allows a
        copy."""
        if tuple(ids) == self._ids:
            return
        self._ids, self._rows = (), KvCache(len(ids))
        try:
            with memory_for("a copy of the system prompt", MEMORY_HINT):
                self._rows.fork(cache, len(ids))
        except OutOfMemory:
            self._rows.release()
        else:
            self._ids = tuple(ids)
