"""Opens an SQLite file that only its owner can read, checks it, and moves it away if it is damaged.

The file is made with mode 0600 before SQLite opens it. SQLite gives its journals the same mode.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

PARTS = ("", "-wal", "-shm")
"""Endings of the names of the files of one database: the database itself and its two journals."""


def connect(path: Path, wait_s: float) -> sqlite3.Connection:
    """Return a connection to the file `path`; make the file if there is none. Each statement is one
    transaction, unless BEGIN is executed.

    If another process has locked the file, a write waits for `wait_s` seconds at most. A finished
    write survives a crash of this process. It survives a power cut only after the next checkpoint.
    Raises OSError or sqlite3.Error.
    """
    _make(path)
    database = sqlite3.connect(path, wait_s, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        database.close()
        raise
    return database


def _make(path: Path) -> None:
    """Make an empty file of mode 0600, unless the file exists.

    An existing file is not opened here. On POSIX, closing it would drop the locks of all other
    connections of this process. The next process that closes the database would then delete their
    journal.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        # Opening a pipe would block for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(f"{path} is no file") from None


def close_to_others(path: Path) -> None:
    """Set mode 0600 for the file and its journals, so that only the owner can read them."""
    for part in PARTS:
        file = path.with_name(path.name + part)
        with suppress(OSError):  # the file is somebody else's, or there is no such journal
            file.chmod(0o600)


def intact(database: sqlite3.Connection) -> bool:
    """Return whether SQLite finds no damage in the file."""
    return [row[0] for row in database.execute("PRAGMA quick_check(1)")] == ["ok"]


def set_aside(path: Path, now: datetime) -> Path:
    """Move a damaged file and its journals into a new folder beside them. Return the folder.

    Nothing is overwritten. Raises OSError.
    """
    names = (f"{path.name}.damaged-{now:%Y%m%d-%H%M%S}-{number}" for number in count(1))
    folder = next(folder for folder in map(path.with_name, names) if _made(folder))
    for part in PARTS:
        file = path.with_name(path.name + part)
        if file.exists():
            file.rename(folder / file.name)
    return folder


def _made(folder: Path) -> bool:
    """Make the folder. Return False if it exists already."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def lease(path: Path, number: int) -> sqlite3.Connection:
    """Return the lease of conversation `number` in the file `path`: the right to write it.

    It is a lock on a file of its own, which ends when it is closed, and with its process. Raises
    sqlite3.OperationalError if the lease is taken, OSError, and sqlite3.Error.
    """
    folder = path.with_name(f"{path.name}.leases")
    folder.mkdir(mode=0o700, exist_ok=True)
    _make(folder / str(number))
    lock = sqlite3.connect(folder / str(number), 0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        lock.close()
        raise
    return lock
