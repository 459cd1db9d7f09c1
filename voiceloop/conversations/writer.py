"""The thread that writes a conversation into the store, so that the event loop never waits for a
disk."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from queue import Empty, SimpleQueue

from voiceloop.conversations.lease import BEAT_S, Holder
from voiceloop.conversations.store import Statement

CALM_S = 1.0
"""Seconds without writes after which what was written is brought to the disk for good. That may
take a second, in which nothing else is written."""
MOST_PENDING = 5000
"""Maximum number of statements that wait while the disk refuses them; later, the oldest are
lost."""
END_S = 10.0
"""Maximum seconds that the end waits for the last writes."""


class ConversationWriter:
    """The one writer of a conversation. Its methods return at once."""

    def __init__(self, database: sqlite3.Connection, conversation: int, holder: Holder) -> None:
        """Write to `database`, which belongs to this thread from now on, for as long as `holder`
        has the lease of the conversation."""
        self.trouble = ""
        """Why nothing is written any more; empty while all is well."""
        self.lost = False
        """Whether another process has taken the lease."""
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
        """Have the statements executed, soon and in order."""
        for statement in statements:
            self._queue.put(statement)

    def close(self) -> None:
        """Write what is left, give the lease back and close the database."""
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
                    self._tried(self._commit)  # a sign of life, and another try
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
        """Do `work`. Return False if the disk refuses it."""
        assert callable(work)
        try:
            work()
        except sqlite3.Error as error:
            self.trouble = self.trouble or str(error)
            return False
        return True

    def _commit(self) -> None:
        """Write all that is pending in one transaction, if the lease is still ours."""
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

    def _checkpoint(self) -> None:
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _release(self) -> None:
        self._database.execute(
            "DELETE FROM leases WHERE conversation = ? AND token = ?",
            (self._conversation, self._holder.token),
        )
        self._checkpoint()
