"""The store of conversations: one SQLite file for each user, `conversations.sqlite3`.

Only the process that has the lease of a conversation writes it, through its `writer`. Other
processes may read meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from voiceloop.conversations.files import close_to_others, connect, intact, lease, set_aside
from voiceloop.conversations.records import (
    KeptCall,
    KeptOutline,
    KeptRecord,
    KeptSummary,
    KeptTurn,
    ResumedConversation,
)
from voiceloop.errors import VoiceloopError
from voiceloop.foreign import parsed
from voiceloop.settings.files import data_folder
from voiceloop.skills.known import Fact

VARIABLE = "VOICELOOP_CONVERSATIONS"
MADE_BY, VERSION = 0x766C6376, 2
"""The `application_id` and the `user_version` of the file."""
WAIT_S = 2.0
"""Maximum seconds for which a write waits for another process."""
MOST_RESUMED = 400
"""Maximum number of turns that are read when a conversation continues."""

_TABLES = """
CREATE TABLE IF NOT EXISTS conversations (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, began TEXT NOT NULL, skills BLOB
);
CREATE TABLE IF NOT EXISTS turns (
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
    number INTEGER NOT NULL, at TEXT NOT NULL, ended TEXT, language TEXT NOT NULL,
    said TEXT NOT NULL, replied TEXT NOT NULL, calls TEXT NOT NULL, words INTEGER NOT NULL,
    chars INTEGER NOT NULL, heard TEXT, kept TEXT, outcome TEXT, PRIMARY KEY (conversation, number)
);
CREATE TABLE IF NOT EXISTS summaries (
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
    through INTEGER NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (conversation, through)
);
CREATE TABLE IF NOT EXISTS facts (
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
    number INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (conversation, number)
);
"""
_NAMES = {"conversations", "turns", "summaries", "facts"}
_TURN = "number, at, ended, language, said, replied, calls, words, chars, heard, kept, outcome"


class StoreUnusable(VoiceloopError):
    """Raised if the store cannot be opened or written. A conversation can go on without it."""


class _Damaged(Exception):
    """Raised if the file lacks tables, or SQLite finds damage in it."""


def location(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the store: the value of $VOICELOOP_CONVERSATIONS, or else a file in the
    user's data folder."""
    if named := environ.get(VARIABLE):
        return Path(named).expanduser()
    return data_folder(environ) / "conversations.sqlite3"


def now() -> datetime:
    """Return the present time in UTC, cut to milliseconds."""
    found = datetime.now(UTC)
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


class ConversationStore:
    """An open store. Its methods block, so they are called only before and after sessions."""

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        """Open the file `path`, or make it. A damaged file is moved away, and `tell` gets one line
        that says so.

        Raises StoreUnusable if the file cannot be opened or made, and VoiceloopError if it belongs
        to another program or a newer voiceloop.
        """
        self.path = path.absolute()
        self._lease: sqlite3.Connection | None = None
        try:
            self.database = self._opened(tell)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the file, and give the lease back that `claim` has taken."""
        self.database.close()
        if self._lease:
            self._lease.close()

    # ---- reading

    def outlines(self) -> list[KeptOutline]:
        """Return an outline of each conversation, sorted by name."""
        rows = self._rows(
            "SELECT name, (SELECT count(*) FROM turns WHERE conversation = id),"
            " (SELECT count(*) FROM facts WHERE conversation = id), began,"
            " (SELECT max(at) FROM turns WHERE conversation = id) FROM conversations ORDER BY name"
        )
        return [
            KeptOutline(name, turns, facts, _time(began), last and _time(last))
            for name, turns, facts, began, last in rows
        ]

    def record(self, name: str) -> KeptRecord:
        """Return the whole content of the conversation `name`. Raises VoiceloopError for an unknown
        name."""
        number, began = self._found(name)
        return KeptRecord(
            name=name,
            began=datetime.fromisoformat(began),
            facts=self._facts(number),
            summaries=self._summaries(number),
            turns=self._turns(number, after=0, most=-1),
        )

    # ---- changing

    def delete(self, name: str) -> None:
        """Delete the conversation `name`, and overwrite its words in the file. Raises
        VoiceloopError for an unknown name, or if a process has the conversation open."""
        number, _ = self._found(name)
        with self._changing(number, name):
            self.database.execute("DELETE FROM conversations WHERE id = ?", (number,))

    def forget(self, name: str, fact: int) -> str:
        """Delete the fact with the number `fact` in the conversation `name`, and return its text.
        Raises VoiceloopError if there is no such fact, or if a process has the conversation
        open."""
        number, _ = self._found(name)
        known = {one.number: one.text for one in self._facts(number)}
        if fact not in known:
            raise VoiceloopError(
                f"'{name}' remembers nothing with the number {fact}",
                f"`voiceloop conversations show {name}` has the numbers",
            )
        with self._changing(number, name):
            self.database.execute(
                "DELETE FROM facts WHERE conversation = ? AND number = ?", (number, fact)
            )
        return known[fact]

    def claim(self, name: str) -> tuple[int, ResumedConversation]:
        """Take the lease of the conversation `name`; make the conversation if there is none.

        Returns the conversation's number in the store, and the state from which it continues.
        Raises VoiceloopError if the lease is taken.
        """
        made = "INSERT INTO conversations (name, began) VALUES (?, ?) ON CONFLICT DO NOTHING"
        try:
            while True:
                with self.transaction():
                    self._stop_older()
                    self.database.execute(made, (name, now().isoformat()))
                    number, _ = self._found(name)
                self._lease = self._taken(number, name)
                if (number,) in self._rows("SELECT id FROM conversations WHERE name = ?", name):
                    return number, self._resumed(number, name)
                self._lease.close()  # another process has deleted the conversation meanwhile
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that is written in the context, or nothing."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.database.execute("COMMIT")
        except BaseException:
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            raise

    def checkpoint(self) -> None:
        """Make all that was written safe from a power cut."""
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # ---- details

    def _opened(self, tell: Callable[[str], None]) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for _ in range(2):
            database, file = None, _file(self.path)
            try:
                database = connect(self.path, WAIT_S)
                self._prepare(database)
                close_to_others(self.path)
                return database
            except (_Damaged, sqlite3.DatabaseError) as error:
                if database is not None:
                    database.close()
                if isinstance(error, sqlite3.OperationalError):
                    raise
                if _is_text(self.path):
                    raise VoiceloopError(
                        f"{self.path} is no database", f"name another in {VARIABLE}"
                    ) from error
                if _file(self.path) == file:  # no other process has replaced the file meanwhile
                    aside = set_aside(self.path, datetime.now())
                    tell(f"{self.path} is damaged, and was moved to {aside}; a new one is begun")
        raise sqlite3.OperationalError("it is damaged")

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Check a file that was opened. If the file is empty, make the tables.

        Raises _Damaged, or VoiceloopError if the file belongs to another program or a newer
        voiceloop.
        """
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("PRAGMA secure_delete = ON")
        (made_by,), (version,) = (
            database.execute(f"PRAGMA {name}").fetchone()
            for name in ("application_id", "user_version")
        )
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not tables and not made_by:
            database.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {MADE_BY};"
                f" PRAGMA user_version = {VERSION}; COMMIT;"
            )
            return
        if made_by != MADE_BY:
            database.close()
            raise VoiceloopError(
                f"{self.path} is a database of another program", f"name another in {VARIABLE}"
            )
        if version > VERSION:
            database.close()
            raise VoiceloopError(
                f"{self.path} was made by a newer voiceloop", "update voiceloop to use it"
            )
        if not tables >= _NAMES or not intact(database):
            raise _Damaged

    def _unusable(self, error: Exception) -> StoreUnusable:
        reason = getattr(error, "strerror", None) or str(error)
        hint = f"check its folder and its disk, or name another file in {VARIABLE}"
        return StoreUnusable(f"{self.path} cannot be used: {reason}", hint)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(self.database.execute(statement, values)) as found:
            return found.fetchall()

    def _found(self, name: str) -> tuple[int, str]:
        """Return the number of the conversation `name`, and the time at which it began. Raises
        VoiceloopError for an unknown name."""
        rows = self._rows("SELECT id, began FROM conversations WHERE name = ?", name)
        if not rows:
            raise VoiceloopError(
                f"no conversation is named '{name}'", "`voiceloop conversations list` has the names"
            )
        return rows[0][0], rows[0][1]

    @contextmanager
    def _changing(self, number: int, name: str) -> Iterator[None]:
        """Open a transaction in which the caller may change the conversation. Raises VoiceloopError
        if a process has the conversation open."""
        with closing(self._taken(number, name)):
            try:
                with self.transaction():
                    if self._found(name)[0] != number:
                        raise VoiceloopError(f"'{name}' has just been begun anew", "try again")
                    self._stop_older()
                    yield
                self.checkpoint()
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def _stop_older(self) -> None:
        """Keep an older voiceloop, which leases by a table, from writing or opening the file."""
        self.database.execute("DROP TABLE IF EXISTS leases")
        self.database.execute(f"PRAGMA user_version = {VERSION}")

    def _taken(self, number: int, name: str) -> sqlite3.Connection:
        """Take the lease of a conversation. Raises VoiceloopError if somebody has it."""
        try:
            return lease(self.path, number)
        except (OSError, sqlite3.Error) as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                raise self._unusable(error) from error
            raise VoiceloopError(
                f"the conversation '{name}' is open in another voiceloop",
                "end that one first, or choose another name",
            ) from error

    def _resumed(self, number: int, name: str) -> ResumedConversation:
        try:
            summaries = self._summaries(number)
            summary = summaries[-1] if summaries else None
            after = summary.through if summary else 0
            ((skills, last),) = self._rows(
                "SELECT skills, (SELECT max(number) FROM turns WHERE conversation = id)"
                " FROM conversations WHERE id = ?",
                number,
            )
            turns = self._turns(number, after, MOST_RESUMED)
            following = max(last or 0, after) + 1
            return ResumedConversation(
                turns, self._facts(number), summary, skills or b"", following
            )
        except (ValueError, TypeError) as error:  # another program has written into the file
            raise VoiceloopError(
                f"the conversation '{name}' in {self.path} cannot be read: {error}",
                "delete it, or choose another name",
            ) from error

    def _turns(self, number: int, after: int, most: int) -> tuple[KeptTurn, ...]:
        rows = self._rows(
            f"SELECT {_TURN} FROM turns WHERE conversation = ? AND number > ?"
            " ORDER BY number DESC LIMIT ?",
            *(number, after, most),
        )
        return tuple(turn_of(row) for row in reversed(rows))

    def _facts(self, number: int) -> tuple[Fact, ...]:
        rows = self._rows(
            "SELECT number, text FROM facts WHERE conversation = ? ORDER BY number", number
        )
        return tuple(Fact(*row) for row in rows)

    def _summaries(self, number: int) -> tuple[KeptSummary, ...]:
        rows = self._rows(
            "SELECT through, text, at FROM summaries WHERE conversation = ? ORDER BY through",
            number,
        )
        return tuple(KeptSummary(through, text, _time(at)) for through, text, at in rows)


def _file(path: Path) -> int | None:
    """Return the inode number of the file at `path`; None if there is no file."""
    return path.stat().st_ino if path.exists() else None


def _is_text(path: Path) -> bool:
    """Return whether a file holds text, which no database becomes, however damaged. No connection
    of this process may have it open: SQLite's locks would be lost."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return head != b"" and b"\0" not in head


def row_of(turn: KeptTurn, chars: int) -> tuple[object, ...]:
    """Return the turn as a row of the table. `chars` is the number of characters of the reply that
    were heard. A row has `heard` and `kept` only if the turn is over."""
    over = turn.outcome is not None
    calls = msgspec.json.encode(turn.calls).decode()
    return (
        *(turn.number, turn.at.isoformat(), turn.ended and turn.ended.isoformat(), turn.language),
        *(turn.said, turn.replied, calls, turn.words, chars),
        *((turn.heard, turn.kept) if over else (None, None)),
        turn.outcome,
    )


def turn_of(row: tuple[Any, ...]) -> KeptTurn:
    """Return the turn of a row. If the turn never ended, the first `chars` characters of its reply
    count as heard."""
    number, at, ended, language, said, replied, calls, words, chars, heard, kept, outcome = row
    if outcome is None:
        heard = kept = replied[:chars]
    return KeptTurn(
        number=number,
        at=_time(at),
        ended=_time(ended) if ended else None,
        language=language,
        said=said,
        replied=replied,
        calls=msgspec.convert(parsed(calls), tuple[KeptCall, ...]),
        words=words,
        heard=heard,
        kept=kept,
        outcome=outcome,
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


# ---- what a writer writes

Statement = tuple[str, tuple[object, ...]]
"""An SQL statement and its values."""


def turn_statement(number: int, turn: KeptTurn, chars: int) -> Statement:
    """Return the statement that writes `turn` of the conversation `number`. `chars` is the number
    of characters of the reply that were heard."""
    places = ", ".join("?" * 13)
    values = (number, *row_of(turn, chars))
    return f"INSERT OR REPLACE INTO turns (conversation, {_TURN}) VALUES ({places})", values


def heard_statement(number: int, turn: int, words: int, chars: int) -> Statement:
    """Return the statement that writes how much of the reply of turn `turn` was heard: a number of
    words and a number of characters."""
    statement = "UPDATE turns SET words = ?, chars = ? WHERE conversation = ? AND number = ?"
    return statement, (words, chars, number, turn)


def skills_statement(number: int, skills: bytes) -> Statement:
    """Return the statement that writes the state of the skills."""
    return "UPDATE conversations SET skills = ? WHERE id = ?", (skills, number)


def fact_statement(number: int, fact: Fact) -> Statement:
    """Return the statement that writes a fact."""
    return "INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (number, fact.number, fact.text)


def strike_statement(number: int, fact: int) -> Statement:
    """Return the statement that deletes the fact with the number `fact`."""
    return "DELETE FROM facts WHERE conversation = ? AND number = ?", (number, fact)


def summary_statement(number: int, summary: KeptSummary) -> Statement:
    """Return the statement that writes a summary."""
    values = (number, summary.through, summary.text, summary.at.isoformat())
    return "INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?)", values
