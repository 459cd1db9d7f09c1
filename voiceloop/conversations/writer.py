"""Writes a conversation into the store on its own thread, so that the event loop never waits for a
disk."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from queue import Empty, SimpleQueue

from voiceloop.conversations.files import BEAT_S, Holder
from voiceloop.conversations.store import Statement

CALM_S = 1.0
"""Seconds without writes after which a checkpoint makes all writes safe from a power cut. A
checkpoint may take a second, and nothing else is written meanwhile."""
MOST_PENDING = 5000
"""Maximum number of statements that wait while the disk refuses writes. If more come, the oldest
are lost."""
END_S = 10.0
"""Maximum seconds that `close` waits for the last writes."""


class ConversationWriter:
    """The only writer of a conversation. `write` returns at once; `close` waits."""

    def __init__(self, database: sqlite3.Connection, conversation: int, holder: Holder) -> None:
        """Start a thread that writes to `database`. Only this thread may use `database` from now
        on. It writes as long as `holder` has the lease of the conversation."""
        self.trouble = ""
        """Why statements wait: the first error since the last write, or the loss of the lease.
        Empty if nothing waits."""
        self.lost = False
        """Whether another process has taken the lease. If so, nothing is written any more."""
        self._database = database
        self._conversation = conversation
        self._holder = holder
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
        """Write the statements that are left, give the lease back and close the database. Waits for
        `END_S` at most."""
        self._queue.put(None)
        self._thread.join(END_S)

    def _run(self) -> None:
        ending, fresh = False, False
        while not (ending or self.lost):
            try:
                item = self._queue.get(timeout=CALM_S if fresh else BEAT_S)
            except Empty:
                if fresh:
                    fresh = not self._tried(self._checkpoint)
                else:
                    self._tried(self._commit)  # gives a sign of life, and tries failed writes again
                continue
            while item is not None:
                self._pending.append(item)
                try:
                    item = self._queue.get_nowait()
                except Empty:
                    break
            ending = item is None
            fresh = self._tried(self._commit)
        if not self.lost:
            self._tried(self._release)
        with suppress(sqlite3.Error):
            self._database.close()

    def _tried(self, work: object) -> bool:
        """Call `work`. If SQLite raises an error, keep it in `trouble` and return False."""
        assert callable(work)
        try:
            work()
        except sqlite3.Error as error:
            self.trouble = self.trouble or str(error)
            return False
        return True

    def _commit(self) -> None:
        """Write all pending statements in one transaction. If another process has taken the lease,
        write nothing and set `lost`."""
        execute, now = self._database.execute, datetime.now(UTC).timestamp()
        execute("BEGIN IMMEDIATE")
        try:
            mine = execute(
                "UPDATE leases SET seen = ? WHERE conversation = ? AND token = ?",
                (now, self._conversation, self._holder.token),
            )
            if mine.rowcount != 1:
                self.lost = True
                self.trouble = "another process has taken this conversation over"
                execute("ROLLBACK")
                return
            for statement, values in self._pending:
                execute(statement, values)
            execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                execute("ROLLBACK")
            raise
        self._pending.clear()
        self.trouble = ""

    def _checkpoint(self) -> None:
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _release(self) -> None:
        self._database.execute(
            "DELETE FROM leases WHERE conversation = ? AND token = ?",
            (self._conversation, self._holder.token),
        )
        self._checkpoint()
