"""An SQLite file that only its owner can read: opened, checked, and set aside if it is damaged.

The file is made with mode 0600 before SQLite opens it; SQLite gives its journals the same mode.
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
"""Endings of the names of the files that belong to one database."""


def connect(path: Path, wait_s: float) -> sqlite3.Connection:
    """Return a connection to the file, which is made if there is none. Each statement is a
    transaction of its own, unless BEGIN is executed.

    A write that finds the file locked waits for `wait_s` seconds. Writes survive the end of the
    process at once, and a power cut after the next checkpoint. Raises OSError or sqlite3.Error.
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
    """Make an empty file of mode 0600, unless there is a file.

    A file that is there is not opened here. On POSIX closing it would drop the locks of all other
    connections of this process, and the next process that closes the database would delete their
    journal.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        # A pipe with this name would block for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(f"{path} is no file") from None


def close_to_others(path: Path) -> None:
    """Let only the owner read the file and its journals."""
    for part in PARTS:
        file = path.with_name(path.name + part)
        with suppress(OSError):  # the file is somebody else's, or there is no such journal
            file.chmod(0o600)


def intact(database: sqlite3.Connection) -> bool:
    """Return whether SQLite finds no damage in the file."""
    return [row[0] for row in database.execute("PRAGMA quick_check(1)")] == ["ok"]


def set_aside(path: Path, now: datetime) -> Path:
    """Move a damaged file and its journals into a new folder beside it, and return the folder.

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
    """Make a folder. Return False if there is one already."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True
