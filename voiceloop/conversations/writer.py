"""Writes a conversation into the store on its own thread, so that the event loop never waits for a
disk."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from voiceloop.conversations.store import ConversationStore, Statement

CALM_S = 1.0
"""Seconds without writes after which a checkpoint makes all writes safe from a power cut. A
checkpoint may take a second, and nothing else is written meanwhile."""
AGAIN_S = 5.0
"""Seconds after which writes that failed are tried again."""
MOST_PENDING = 5000
"""Maximum number of statements that wait while the disk refuses writes. If more come, the oldest
are lost."""
END_S = 10.0
"""Maximum seconds that `close` waits for the last writes."""


class ConversationWriter:
    """The only writer of a conversation. `write` returns at once; `close` waits."""

    def __init__(self, store: ConversationStore) -> None:
        """Start a thread that writes to `store`, which has the lease of the conversation. Only this
        thread may use `store` from now on."""
        self.trouble = ""
        """Why statements wait: the first error since the last write. Empty if nothing waits."""
        self._store = store
        self._queue = SimpleQueue[Statement | None]()
        self._pending = deque[Statement](maxlen=MOST_PENDING)
        self._thread = threading.Thread(
            target=self._run, name="voiceloop-conversation", daemon=True
        )
        self._thread.start()

    def write(self, *statements: Statement) -> None:
        """Queue `statements`. The writer's thread executes them soon, in order."""
        for statement in statements:
            self._queue.put(statement)

    def close(self) -> None:
        """Write the statements that are left, and close the store, which gives the lease back.

        Waits for `END_S` at most.
        """
        self._queue.put(None)
        self._thread.join(END_S)

    def _run(self) -> None:
        ending, fresh = False, False
        while not ending:
            try:
                calm_s = AGAIN_S if self._pending else CALM_S if fresh else None
                item = self._queue.get(timeout=calm_s)
            except Empty:
                if self._pending:
                    fresh = self._tried(self._commit)
                else:
                    fresh = not self._tried(self._store.checkpoint)
                continue
            while item is not None:
                self._pending.append(item)
                try:
                    item = self._queue.get_nowait()
                except Empty:
                    break
            ending = item is None
            fresh = self._tried(self._commit)
        with suppress(sqlite3.Error):
            self._store.checkpoint()
        self._store.close()

    def _tried(self, work: Callable[[], None]) -> bool:
        """Call `work`. If SQLite raises an error, keep it in `trouble` and return False."""
        try:
            work()
        except sqlite3.Error as error:
            self.trouble = self.trouble or str(error)
            return False
        return True

    def _commit(self) -> None:
        """Write all pending statements in one transaction."""
        with self._store.transaction():
            for statement, values in self._pending:
                self._store.database.execute(statement, values)
        self._pending.clear()
        self.trouble = ""
