"""Opens an SQLite file that only its owner can read, checks it, and moves it away if it is damaged.
In it, only one process writes a conversation at a time.

The file is made with mode 0600 before SQLite opens it. SQLite gives its journals the same mode.

A holder of a conversation's lease is identified by its *place*, its process id and the time at
which the process began. A place is one run of a machine, from boot to shutdown, and one namespace
of process ids. A process in the same place can see whether the holder is alive. For all other
processes, the holder counts as alive for `FRESH_S` after its last sign of life.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from secrets import token_hex

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


FRESH_S = 20.0
"""Seconds for which a holder counts as alive after a sign of life, if the process itself cannot be
seen."""
BEAT_S = 5.0
"""Seconds between two signs of life of a holder that writes nothing."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has a lease."""

    token: str
    """A random string that identifies this lease."""
    place: str
    """The boot id of the machine and the namespace of process ids. Empty if the system does not
    show them, so that processes cannot be seen."""
    pid: int
    started: str
    """The time at which the process began, in clock ticks since the boot; empty if it is not
    known."""

    def alive(self, seen: float, now: float) -> bool:
        """Return whether the holder still has its lease. `seen` is the time of its last sign of
        life, and `now` the present time; both are Unix times in seconds."""
        if self.place and self.place == _place():
            return bool(self.started) and _started(self.pid) == self.started
        return now - seen < FRESH_S


def this_process() -> Holder:
    """Return a new holder for this process."""
    return Holder(token_hex(8), _place(), os.getpid(), _started(os.getpid()))


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux, or no /proc
        return ""


def _started(pid: int) -> str:
    """Return when the process `pid` began, in clock ticks since the boot. Return an empty string if
    there is no such process, or if it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
